// Checks of an open page: axe finds nothing in either scheme; nothing is cut off, covered or wider than its window; and every word is of
// the page's language.

// A phone held upright is as wide as a window of 1280 pixels at 400 %, and this is its height.
export const NARROW = { width: 320, height: 256 };

// Returns axe's findings for the open page, or for a part of it.
export async function accessibilityProblems(page, options = {}, part = "html") {
  await page.evaluate(settle);
  return page.evaluate(async ([options, part]) => {
    // Contrast of level AAA: 7 to 1, and 4.5 to 1 where text is large.
    const rules = { "color-contrast-enhanced": { enabled: true } };
    const { violations, incomplete } = await window.axe.run(part, { resultTypes: ["violations", "incomplete"], rules, ...options });
    const told = ({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 200)).join(" | ")}`;
    // Contrast that axe cannot judge is a problem too, but where the rest of a text has to be scrolled to, and in a mark
    // of one sign, which it takes for a picture.
    const judged = ({ any, target }) => any.every(({ data }) => ["shortTextContent", "nonBmp"].includes(data?.messageKey)) || document.querySelector(target[0])?.closest("pre");
    const unclear = incomplete.filter(({ id, nodes }) => id === "color-contrast" && !nodes.every(judged));
    return [...violations, ...unclear].map(told);
  }, [options, part]);
}

// Every rule in light, and in dark the one rule that colours matter to.
export async function problemsInBothSchemes(page, part) {
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await accessibilityProblems(page, { runOnly: ["color-contrast", "color-contrast-enhanced"] }, part);
  await page.emulateMedia({ colorScheme: "light" });
  return [...await accessibilityProblems(page, {}, part), ...dark.map((words) => `in dark: ${words}`)];
}

// Returns problems of the page's layout in its window.
export async function layoutProblems(page) {
  const { width, height } = page.viewportSize();
  await page.evaluate(settle);
  return (await page.evaluate(layout, width)).map((words) => `${width} by ${height}: ${words}`);
}

// As above in a narrow window, as it is and with the largest spacing of lines, words and letters that a reader may choose (WCAG 2.2,
// 1.4.12). Letters of other scripts are joined, and are not set apart.
export async function narrowProblems(page) {
  const before = page.viewportSize();
  await page.setViewportSize(NARROW);
  const problems = await layoutProblems(page);
  await page.evaluate(() => {
    for (const element of document.body.querySelectorAll("*:not(svg, svg *)")) {
      const { lineHeight, fontSize } = getComputedStyle(element);
      if (!(parseFloat(lineHeight) >= 1.5 * parseFloat(fontSize))) element.style.setProperty("line-height", "1.5", "important");
      element.style.setProperty("word-spacing", ".16em", "important");
      if (document.documentElement.lang === "en") element.style.setProperty("letter-spacing", ".12em", "important");
      if (element.localName === "p") element.style.setProperty("margin-bottom", "2em", "important");
    }
  });
  problems.push(...(await layoutProblems(page)).map((words) => `with text spacing, ${words}`));
  await page.setViewportSize(before);
  return problems;
}

// Returns controls and selected choices that look alike where the reader's colours replace ours.
export async function forcedColourProblems(page) {
  await page.emulateMedia({ forcedColors: "active" });
  const problems = await page.evaluate(() => {
    const named = (element) => `<${element.localName} class="${element.className}"> ${element.textContent.trim().slice(0, 40)}`;
    const seen = (selector) => [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility({ visibilityProperty: true }));
    const canvas = getComputedStyle(document.body).backgroundColor;
    const edged = (element, side) => {
      const style = getComputedStyle(element);
      return style[`border${side}Style`] !== "none" && parseFloat(style[`border${side}Width`]) > 0 && ![canvas, "rgba(0, 0, 0, 0)"].includes(style[`border${side}Color`]);
    };
    const marked = (element) => {
      const { outlineStyle, textDecorationLine } = getComputedStyle(element);
      return edged(element, "Bottom") || outlineStyle !== "none" || textDecorationLine !== "none";
    };
    const bare = seen(".button, button:not(.link, .plain)").filter((element) => !["Top", "Bottom", "Left", "Right"].every((side) => edged(element, side)));
    for (const list of document.querySelectorAll(".languages[open] ul, nav ul")) {
      const links = seen("a").filter((link) => list.contains(link));
      bare.push(...links.filter((link) => marked(link) !== link.matches("[aria-current]")));
    }
    return bare.map(named);
  });
  await page.emulateMedia({ forcedColors: null });
  return problems.map((words) => `in forced colours: ${words}`);
}

// Runs in the page: puts elements that stick to an edge of the window back into their places, and those that move at the end of their way.
function settle() {
  for (const animation of document.getAnimations()) {
    animation.pause();
    animation.currentTime = animation.effect.getComputedTiming().duration - 1;
  }
  for (const element of document.body.querySelectorAll("*")) {
    const { position, bottom } = getComputedStyle(element);
    if (position === "sticky" && bottom !== "auto") element.style.position = "static";
  }
}

// Runs in the page. `wide` is the window's width: a phone's browser would widen `innerWidth` to what does not fit.
function layout(wide) {
  const problems = [];
  const root = document.scrollingElement;
  if (root.scrollWidth > wide) problems.push(`scrolls sideways to ${root.scrollWidth}`);
  const named = (element) => `<${element.localName}${element.id ? ` id=${element.id}` : ""} class="${element.className.baseVal ?? element.className}"> ${element.textContent.trim().slice(0, 40)}`;
  const style = new Map();
  const styled = (element) => style.get(element) ?? style.set(element, getComputedStyle(element)).get(element);
  // Text for screen readers alone is clipped on purpose.
  const seen = [...document.body.querySelectorAll("*")].filter((element) =>
    element.checkVisibility({ visibilityProperty: true }) && !element.closest(".unseen, .skip:not(:focus), svg *"));
  const ownText = (element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  for (const element of seen) {
    const { overflowX, overflowY, display } = styled(element);
    const tooWide = element.scrollWidth > element.clientWidth + 1, tooHigh = element.scrollHeight > element.clientHeight + 1;
    // Text in a field scrolls with the caret.
    if (display === "inline" || element.matches("svg, input, textarea, select")) continue;
    const hides = (overflow) => overflow === "hidden" || overflow === "clip";
    if ((hides(overflowX) && tooWide) || (hides(overflowY) && tooHigh)) problems.push(`cut off: ${named(element)}`);
    if (overflowX === "visible" && tooWide && ownText(element) && element.clientWidth > 0) problems.push(`spills over: ${named(element)}`);
    if ((overflowX === "auto" || overflowX === "scroll") && tooWide && element.localName !== "pre") problems.push(`scrolls sideways inside: ${named(element)}`);
  }
  const boxes = seen.filter((element) => element.matches("[role=img], input, select, textarea, img, .mark") || (ownText(element) && styled(element).display !== "inline"))
    .map((element) => ({ element, box: element.getBoundingClientRect() })).filter(({ box }) => box.width > 0 && box.height > 0);
  for (const [at, one] of boxes.entries()) {
    if ((one.box.left < -1 || one.box.right > wide + 1) && !one.element.closest("pre")) problems.push(`out of the window: ${named(one.element)}`);
    for (const other of boxes.slice(at + 1)) {
      if (one.element.contains(other.element) || other.element.contains(one.element)) continue;
      const across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
      const down = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
      if (across > 2 && down > 2) problems.push(`${named(one.element)} covers ${named(other.element)}`);
    }
  }
  return problems;
}

// Returns words outside the language's script: text, names of pictures and the title, also those that only a script would show. `names` are
// people's own names for things, in any language.
export function foreignWords(page, script, names) {
  return page.evaluate(([script, names]) => {
    const own = new RegExp(`^[\\p{Script=${script}}\\p{Script=Inherited}\\p{Script=Common}]*$`, "u");
    // Marks and names written in Latin letters everywhere.
    const latin = new Set(["QR", "PIN", "UTC", "IST", "Android", "iPhone", "iPad", "iOS"]);
    const texts = [document.title];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (node.nodeType === Node.TEXT_NODE) {
        const around = node.parentElement;
        // A name of a language is in that language, and says so.
        if (!around.closest("script, style, bdi, [lang]:not(html)") && (around.closest("noscript") === null)) texts.push(node.data);
      } else {
        for (const name of ["aria-label", "alt", "title", "data-words", "data-months"]) texts.push(node.getAttribute(name) ?? "");
      }
    }
    // Ids, addresses and parts of a pattern belong to no language.
    const neutral = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|https?:\S+|\{\w+\}/g;
    const bare = texts.map((text) => names.reduce((left, name) => left.replaceAll(name, ""), text.replaceAll(neutral, "")));
    const words = bare.flatMap((text) => text.match(/[\p{L}\p{M}]+/gu) ?? []);
    return [...new Set(words.filter((word) => !own.test(word) && !latin.has(word)))];
  }, [script, names]);
}

// Returns the headers that an answer lacks for browsers, crawlers and proxies.
export function headerProblems(answer, { referrer = "no-referrer" } = {}) {
  const headers = answer.headers();
  const wanted = { "cache-control": /^no-store$/, "referrer-policy": new RegExp(`^${referrer}$`), "x-content-type-options": /^nosniff$/, "x-robots-tag": /^noindex$/ };
  const wrong = Object.entries(wanted).filter(([name, value]) => !value.test(headers[name] ?? "")).map(([name]) => `${name}: ${headers[name]}`);
  const policy = headers["content-security-policy"] ?? "";
  for (const part of ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", "form-action '"]) {
    if (!policy.includes(part)) wrong.push(`the policy lacks ${part}`);
  }
  for (const part of ["unsafe", "*", "https:", "blob:"]) if (policy.includes(part)) wrong.push(`the policy has ${part}`);
  return wrong;
}
