// Chromium in CHROMIUM, the devices that the pages know, and the checks of a page.

import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const installed = createRequire(new URL("../../target/browser/", import.meta.url));
const { chromium } = installed("playwright-core");
const axe = await readFile(installed.resolve("axe-core/axe.min.js"), "utf8");

const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };

export const devices = {
  android: { ...phone, userAgent: "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36" },
  iphone: { ...phone, userAgent: "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1" },
  ipad: { viewport: { width: 820, height: 1180 }, deviceScaleFactor: 2, hasTouch: true, userAgent: "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15" },
  desktop: { viewport: { width: 1280, height: 800 } },
  narrow: { ...phone, viewport: { width: 320, height: 568 } },
};

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM, args: flags });

// Opens a blank page that collects problems: script errors, breaches of the policy and, unless it `mayLeave`, loads from elsewhere; and
// addresses of other apps. A `still` page never goes to another by itself; a `judged` one has axe; the clock of a `hurried` one can be
// advanced.
export async function open(browser, device, { mayLeave = false, still = false, judged = false, hurried = false, context, ...more } = {}) {
  context ??= await browser.newContext({ ...devices[device], ...more });
  const page = await context.newPage();
  if (still) await page.addInitScript(refuseLongWaits);
  if (judged) await page.addInitScript(axe);
  if (hurried) {
    await page.clock.install();
    await page.addInitScript(abortByThatClock);
  }
  page.troubles = [];
  page.launched = [];
  await page.exposeFunction("launches", (url) => { page.launched.push(url); });
  await page.addInitScript(launchNothing);
  page.on("pageerror", (error) => page.troubles.push(String(error)));
  page.on("console", (message) => { if (/Content Security Policy/i.test(message.text())) page.troubles.push(message.text()); });
  page.on("request", (request) => {
    if (mayLeave || request.isNavigationRequest() || request.url().startsWith("data:")) return;
    if (new URL(request.url()).origin !== new URL(request.frame().url()).origin) page.troubles.push(`asked for ${request.url()}`);
  });
  return page;
}

// Opens a page at an address. `kept` is an answer to show in place of a fresh one.
export async function visit(browser, device, url, { kept, ...more } = {}) {
  const page = await open(browser, device, more);
  if (kept) await page.route(url, (route) => route.fulfill(kept));
  page.answer = await page.goto(url);
  return page;
}

// There is no other app here, and a browser of a desktop would ask in a window before the page whether to open one.
function launchNothing() {
  globalThis.navigation.addEventListener("navigate", (event) => {
    if (event.destination.url.startsWith("http")) return;
    event.preventDefault();
    globalThis.launches(event.destination.url);
  });
}

function refuseLongWaits() {
  const { setTimeout } = window;
  window.setTimeout = (what, millis, ...rest) => millis >= 1000 ? 0 : setTimeout(what, millis, ...rest);
}

// Playwright's clock does not have this one.
function abortByThatClock() {
  AbortSignal.timeout = (millis) => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(new DOMException("", "TimeoutError")), millis);
    return controller.signal;
  };
}

// Advances the clock of a page by a minute, in steps in which something can answer.
export async function minutePasses(page) {
  for (let step = 0; step < 20; step += 1) await page.clock.fastForward(3_000);
}

// Addresses by which pages follow a transaction or an event.
export const LIVE = /\/(events|status)(\?|$)/;

let pictures = 0;

// Runs a program on bytes in a file of its own; resolves to its stdout.
async function onFile(suffix, bytes, program, args, options = {}) {
  const path = join(tmpdir(), `sakshi-picture-${process.pid}-${pictures++}${suffix}`);
  await writeFile(path, bytes);
  try {
    return (await promisify(execFile)(program, [...args, path], { maxBuffer: 64 * 1_024 * 1_024, ...options })).stdout;
  } finally {
    await rm(path, { force: true });
  }
}

// Returns a scanner's reading of a PNG picture.
export async function read(png) {
  return (await onFile(".png", png, "zbarimg", ["--quiet", "--raw", "-Sdisable", "-Sqrcode.enable"])).trim();
}

// Returns a scanner's reading of an element of the page, as drawn.
export async function scan(page, selector) {
  return read(await page.locator(selector).screenshot());
}

// Returns a scanner's reading of a printed page at 150 dots per inch.
export async function scanPrint(pdf) {
  return read(await onFile(".pdf", pdf, "gs", ["-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-sDEVICE=pnggray", "-r150", "-sOutputFile=-"], { encoding: "buffer" }));
}

// Returns grey values of the code within an element, of 255: its darkest and lightest point, and the darkest in its quiet zone, four
// modules wide.
export async function greys(page, selector) {
  const code = page.locator(`${selector} svg`);
  const modules = await code.evaluate((svg) => svg.viewBox.baseVal.width);
  const png = (await code.screenshot()).toString("base64");
  return page.evaluate(async ([png, modules]) => {
    const bytes = Uint8Array.from(atob(png), (letter) => letter.charCodeAt(0));
    const picture = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const { width, height } = picture;
    const canvas = new OffscreenCanvas(width, height).getContext("2d");
    canvas.drawImage(picture, 0, 0);
    const { data } = canvas.getImageData(0, 0, width, height);
    const found = { darkest: 255, lightest: 0, quiet: 255 };
    // The rounded frame around it may touch the outermost module's corners.
    const edge = width / modules, zone = 4 * edge - 1;
    for (let y = edge; y < height - edge; y += 1) {
      for (let x = edge; x < width - edge; x += 1) {
        const grey = data[4 * (Math.floor(y) * width + Math.floor(x)) + 1];
        found.darkest = Math.min(found.darkest, grey);
        found.lightest = Math.max(found.lightest, grey);
        if (x < zone || y < zone || x >= width - zone || y >= height - zone) found.quiet = Math.min(found.quiet, grey);
      }
    }
    return found;
  }, [png, modules]);
}
