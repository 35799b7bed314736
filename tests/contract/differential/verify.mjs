// Judges credentials with the independent library @sd-jwt/core: a first line says how, each further line is a credential.

import { createHash, createPublicKey, verify } from 'node:crypto';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';

// The library is installed outside this folder, so it is found from there.
const installed = new URL('../../../target/contract/node_modules/', import.meta.url);
const locate = createRequire(pathToFileURL(fileURLToPath(installed) + 'index.js'));
const { SDJwtInstance } = await import(pathToFileURL(locate.resolve('@sd-jwt/core')));

const isSigned = (key, text, signature) =>
  verify('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'));

function hasher(data, algorithm) {
  if (algorithm !== 'sha-256' && algorithm !== 'SHA-256') throw new Error(`no hash algorithm ${algorithm}`);
  return createHash('sha256').update(Buffer.from(data)).digest();
}

function holderKey({ cnf }) {
  const { kty, crv, x, y } = cnf.jwk;
  if (kty !== 'EC' || crv !== 'P-256') throw new Error('no P-256 key');
  return createPublicKey({ key: { kty, crv, x, y }, format: 'jwk' });
}

let known;
let sdjwt;
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (!known) {
    known = JSON.parse(line);
    const key = createPublicKey({ key: known.jwk, format: 'jwk' });
    sdjwt = new SDJwtInstance({
      hasher,
      verifier: (text, signature) => isSigned(key, text, signature),
      kbVerifier: (text, signature, payload) => isSigned(holderKey(payload), text, signature),
    });
    continue;
  }
  const { credential, binding } = JSON.parse(line);
  const options = { currentDate: known.now, skewSeconds: known.skew, ...(binding && { keyBindingNonce: known.nonce }) };
  let answer;
  try {
    const { payload } = await sdjwt.verify(credential, options);
    answer = JSON.stringify({ claims: payload });
  } catch (error) {
    answer = JSON.stringify({ refused: `${error?.message}`.slice(0, 200) });
  }
  process.stdout.write(`${answer}\n`);
}
