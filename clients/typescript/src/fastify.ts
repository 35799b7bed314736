/** A receiver for Fastify: `app.register(webhooks(receiver), { prefix: "/hooks" })` adds `POST /hooks/sakshi`. */

import type { FastifyInstance } from "fastify";

import type { Receiver } from "./receiver.js";

/** Bytes of a webhook with documents or a photo. */
const BYTES_MAX = 24 * 1024 * 1024;

/** Answers 200 at once and takes the body afterwards. */
export function webhooks(receiver: Receiver) {
  return async (app: FastifyInstance): Promise<void> => {
    app.post("/sakshi", { bodyLimit: BYTES_MAX }, async (request, reply) => {
      void receiver.take(request.body);
      return reply.code(200).send();
    });
  };
}
