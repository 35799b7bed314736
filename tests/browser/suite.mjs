// One Chromium and a few services for all tests of a run, and the runner of each test.

import { after, test as register } from "node:test";

import { launch } from "./browser.mjs";
import { Service } from "./service.mjs";

// The short form is part of `make test`, the long form of `make nightly`.
export const isLong = process.env.SAKSHI_TESTS === "long";

// A test that takes longer hangs: it fails, and the next one begins. On a busy machine some take minutes.
const LIMIT_MS = 900_000;

export const browser = await launch();

const services = new Map();

// Returns the service of this name, which tests share. A test that stops its service or counts on short lists has its own.
export function shared(name, settings) {
  if (!services.has(name)) services.set(name, Service.start(settings));
  return services.get(name);
}

export const service = await shared("well");

// Registers a test. Its windows are closed when it ends.
export function test(name, body) {
  register(name, { timeout: LIMIT_MS }, async () => {
    try {
      await body();
    } finally {
      await Promise.all(browser.contexts().map((context) => context.close()));
    }
  });
}

after(async () => {
  // Leftovers of a hanging test do not keep the run from ending.
  setTimeout(() => process.exit(1), 10_000).unref();
  await Promise.all([browser.close(), ...[...services.values()].map(async (service) => (await service).stop())]);
});
