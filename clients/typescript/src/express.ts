/** A receiver for Express: `app.post("/hooks/sakshi", webhooks(receiver))`. */

import type { NextFunction, Request, Response } from "express";

import type { Receiver } from "./receiver.js";

/** Bytes of a webhook with documents or a photo. */
const BYTES_MAX = 24 * 1024 * 1024;

/**
 * Answers 200 at once and takes the body in the background; 503 while too many are taken. It reads the body itself, or takes what a
 * parser before it has read.
 */
export function webhooks(receiver: Receiver) {
  return async (request: Request, response: Response, next: NextFunction): Promise<void> => {
    try {
      // A parser that skips a body may set `request.body` to {}.
      const body: unknown = request.readableDidRead ? parsed(request.body) : await read(request);
      response.status(receiver.takeLater(body) ? 200 : 503).end();
    } catch (error) {
      if (error instanceof SyntaxError) response.status(400).end();
      else if (error instanceof RangeError) response.status(413).end();
      else next(error);
    }
  };
}

/** What a parser has read: JSON, or its bytes or text. */
function parsed(body: unknown): unknown {
  if (body === undefined) throw new Error("the webhook was read before, and request.body is not set");
  if (Buffer.isBuffer(body)) return JSON.parse(body.toString("utf8"));
  return typeof body === "string" ? JSON.parse(body) : body;
}

async function read(request: Request): Promise<unknown> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request) {
    parts.push(part as Buffer);
    length += (part as Buffer).length;
    if (length > BYTES_MAX) throw new RangeError("the webhook is too large");
  }
  return JSON.parse(Buffer.concat(parts).toString("utf8"));
}
