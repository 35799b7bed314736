// The weight of pages.

// Returns the bytes of a page with its style and its script, before any compression.
export const MOST = 30_000;

// Opens a page and counts everything that it loads, except drawings of codes and shared data.
export async function weigh(page, show) {
  let loaded = [];
  const keep = (answer) => {
    const { pathname, protocol } = new URL(answer.url());
    if (protocol === "data:" || answer.status() === 303 || /\/(events|live|status)$/.test(pathname)) return;
    // Loads before another page count for that one.
    if (answer.request().isNavigationRequest()) loaded = [];
    const body = answer.body();
    // The body of a page that another has replaced may be gone, and is not needed.
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
