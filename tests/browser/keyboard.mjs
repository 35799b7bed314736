// A page by the keyboard alone: the focus' path, its visibility, and its progress.

// Returns the problems of the focus' path through a page, from its top to its end.
export async function focusProblems(page) {
  // A field with autofocus takes the focus when the page is first drawn.
  await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
  await page.evaluate(() => {
    // The next stop is the first one, wherever the focus was before.
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute("tabindex");
    getSelection().removeAllRanges();
    scrollTo(0, 0);
  });
  const wanted = await page.evaluate(tabStops);
  const problems = [];
  for (const [at, name] of wanted.entries()) {
    await page.keyboard.press("Tab");
    let here = await page.evaluate(focus);
    // A date has stops of its own within it.
    for (let part = 0; part < 8 && at > 0 && here.stop === at - 1 && here.type.startsWith("datetime"); part += 1) {
      await page.keyboard.press("Tab");
      here = await page.evaluate(focus);
    }
    if (here.stop !== at) {
      problems.push(`stop ${at} is ${here.name} instead of ${name}`);
      break;
    }
    if (!here.outlined) problems.push(`${name} does not show the focus`);
    if (!here.inView) problems.push(`${name} has the focus out of sight`);
  }
  // Without a browser around the page, the first stop follows the last one.
  if (wanted.length < 2) return problems;
  await page.keyboard.press("Tab");
  if ((await page.evaluate(focus)).stop === wanted.length - 1) problems.push("the last stop is a trap");
  return problems;
}

// Runs in the page: numbers the stops of the focus in the order of the document, and names them.
function tabStops() {
  const groups = new Set();
  const stops = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter((element) => {
    if (element.disabled || element.type === "hidden" || element.tabIndex < 0 || !element.checkVisibility({ visibilityProperty: true })) return false;
    if (element.type !== "radio") return true;
    // A group of choices is one stop: the selected one.
    const group = document.querySelectorAll(`input[type=radio][name="${element.name}"]`);
    const chosen = [...group].find((radio) => radio.checked) ?? group[0];
    return element === chosen && !groups.has(element.name) && groups.add(element.name);
  });
  stops.forEach((element, at) => { element.dataset.stop = at; });
  return stops.map((element) => element.id || element.textContent.trim().slice(0, 40) || element.name);
}

function focus() {
  const element = document.activeElement;
  const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  return {
    type: element.type ?? "",
    stop: element.dataset.stop === undefined ? -1 : Number(element.dataset.stop),
    name: element.id || element.textContent.trim().slice(0, 40) || element.name || element.localName,
    outlined: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 && !/, 0\)$|transparent/.test(outlineColor),
    inView: box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
  };
}

// Moves the focus with the Tab key to the stop with this name, as a person would.
export async function tabTo(page, locator) {
  const stops = await page.evaluate(tabStops);
  for (let press = 0; press <= stops.length; press += 1) {
    if (await locator.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`the Tab key does not reach ${locator}`);
}

// Presses a control that leads to another page.
export async function lead(page, locator) {
  await tabTo(page, locator);
  await Promise.all([page.waitForEvent("load"), page.keyboard.press("Enter")]);
}

export async function press(page, locator, key = "Enter") {
  await tabTo(page, locator);
  await page.keyboard.press(key);
}
