// Issues a credential with the independent library @sd-jwt/core: see README.md for request and answer.

import { createRequire } from 'node:module';
import { createHash, randomBytes, webcrypto } from 'node:crypto';
import { fileURLToPath, pathToFileURL } from 'node:url';

// The library is installed outside this folder, so it is found from there.
const installed = new URL('../../target/contract/node_modules/', import.meta.url);
const locate = createRequire(pathToFileURL(fileURLToPath(installed) + 'index.js'));
const { SDJwtInstance } = await import(pathToFileURL(locate.resolve('@sd-jwt/core')));

const P256 = { name: 'ECDSA', namedCurve: 'P-256' };
const { subtle } = webcrypto;

async function generate() {
  const pair = await subtle.generateKey(P256, true, ['sign', 'verify']);
  return subtle.exportKey('jwk', pair.privateKey);
}

async function signer({ kty, crv, x, y, d }) {
  const key = await subtle.importKey('jwk', { kty, crv, x, y, d }, P256, false, ['sign']);
  return async (text) => {
    const signature = await subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, key, Buffer.from(text));
    return Buffer.from(signature).toString('base64url');
  };
}

const publicPart = ({ kty, crv, x, y }) => ({ kty, crv, x, y });

async function read(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

const request = await read(process.stdin);
const now = Math.floor(Date.now() / 1000);
const key = request.private_jwk ?? (await generate());
const kid = request.kid ?? key.kid ?? 'issuer-key-1';
const holder = await generate();

const sdjwt = new SDJwtInstance({
  signer: await signer(key),
  signAlg: 'ES256',
  kbSigner: await signer(holder),
  kbSignAlg: 'ES256',
  hasher: (data, algorithm) => createHash(algorithm.replace('-', '')).update(Buffer.from(data)).digest(),
  hashAlg: 'sha-256',
  saltGenerator: (length) => randomBytes(length).toString('base64url'),
});

const payload = {
  iss: request.issuer,
  iat: request.iat ?? now,
  exp: request.exp ?? now + 3600,
  cnf: { jwk: publicPart(holder) },
  ...request.plain,
  ...request.claims,
};
const frame = { _sd: Object.keys(request.claims) };
if (request.decoys ?? true) frame._sd_decoy = 3;
const issued = await sdjwt.issue(payload, frame, { header: { typ: request.typ ?? 'vc+sd-jwt', kid } });

const disclosed = Object.fromEntries((request.disclose ?? Object.keys(request.claims)).map((name) => [name, true]));
const binding = { payload: { iat: request.kb_iat ?? now, aud: request.aud, nonce: request.nonce } };
const credential = await sdjwt.present(issued, disclosed, request.with_kb ? { kb: binding } : undefined);

const jwk = { ...publicPart(key), kid };
process.stdout.write(JSON.stringify({ credential, jwks: { keys: [jwk] }, private_jwk: { ...jwk, d: key.d } }));
