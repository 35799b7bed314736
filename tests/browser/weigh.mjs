// What pages weigh.

// Bytes of a page with its style and its script, as they are before any compression.
export const MOST = 30_000;

// Opens a page and counts everything that it loads, but for the drawings of codes and what people shared.
export async function weigh(page, show) {
  let loaded = [];
  const keep = (answer) => {
    const { pathname, protocol } = new URL(answer.url());
    if (protocol === "data:" || answer.status() === 303 || /\/(events|live|status)$/.test(pathname)) return;
    // What comes before another page counts for that one.
    if (answer.request().isNavigationRequest()) loaded = [];
    const body = answer.body();
    // That of a page which has made way for another one may be gone already, and nobody misses it.
    body.catch(() => {});
    loaded.push(body);
  };
  page.on("response", keep);
  const answer = await show();
  await page.waitForLoadState("load");
  page.off("response", keep);
  const bodies = await Promise.all(loaded);
  const apart = await page.evaluate(() => [...document.querySelectorAll(".code svg, img")].reduce((sum, element) => sum + new TextEncoder().encode(element.outerHTML).length, 0));
  return { answer, bytes: bodies.reduce((sum, body) => sum + body.length, 0) - apart, files: bodies.length };
}
