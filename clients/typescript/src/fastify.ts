/** A receiver for Fastify: `app.register(webhooks(receiver), { prefix: "/hooks" })` adds `POST /hooks/sakshi`. */

import type { FastifyInstance } from "fastify";

import type { Receiver } from "./receiver.js";

/** Bytes of a webhook with documents or a photo. */
const BYTES_MAX = 24 * 1024 * 1024;

/** Answers 200 at once and takes the body in the background; 503 while too many are taken. */
export function webhooks(receiver: Receiver) {
  return async (app: FastifyInstance): Promise<void> => {
    app.post("/sakshi", { bodyLimit: BYTES_MAX }, async (request, reply) => {
      return reply.code(receiver.takeLater(request.body) ? 200 : 503).send();
    });
  };
}
