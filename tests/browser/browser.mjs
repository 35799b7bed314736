// Chromium as Debian packages it, the devices that the pages know, and what is asked of a page.

import { execFile } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const installed = createRequire(new URL("../../target/browser/", import.meta.url));
const { chromium } = installed("playwright-core");
const axe = installed.resolve("axe-core");

const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };

export const devices = {
  android: { ...phone, userAgent: "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36" },
  iphone: { ...phone, userAgent: "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1" },
  desktop: { viewport: { width: 1280, height: 800 } },
  narrow: { ...phone, viewport: { width: 320, height: 568 } },
};

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });

// Opens a page and gathers its troubles: scripts that throw, breaches of the policy, and, unless
// it `mayLeave`, requests to elsewhere. `kept` is an answer to be shown in place of a fresh one; a
// `still` page never goes on to another by itself.
export async function visit(browser, device, url, { mayLeave = false, kept, still = false, ...more } = {}) {
  const context = await browser.newContext({ ...devices[device], ...more });
  const page = await context.newPage();
  if (still) await page.addInitScript(refuseLongWaits);
  if (kept) await page.route(url, (route) => route.fulfill(kept));
  page.troubles = [];
  page.on("pageerror", (error) => page.troubles.push(String(error)));
  page.on("console", (message) => { if (/Content Security Policy/i.test(message.text())) page.troubles.push(message.text()); });
  page.on("request", (request) => {
    const foreign = !request.url().startsWith(new URL(url).origin) && !request.url().startsWith("data:");
    if (foreign && !mayLeave) page.troubles.push(`asked for ${request.url()}`);
  });
  page.answer = await page.goto(url);
  return page;
}

function refuseLongWaits() {
  const { setTimeout } = window;
  window.setTimeout = (what, millis, ...rest) => millis >= 1000 ? 0 : setTimeout(what, millis, ...rest);
}

export async function accessibilityProblems(page) {
  await page.evaluate(await readFile(axe, "utf8"));
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.map((found) => `${found.id}: ${found.nodes.map((node) => node.html).join(" | ")}`);
}

let pictures = 0;

// What a scanner reads from an element of the page, as it is really drawn.
export async function scan(page, selector) {
  const path = join(tmpdir(), `sakshi-code-${process.pid}-${pictures++}.png`);
  await page.locator(selector).screenshot({ path });
  try {
    const { stdout } = await promisify(execFile)("zbarimg", ["--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", path]);
    return stdout.trim();
  } finally {
    await rm(path, { force: true });
  }
}
