// A minimal server with common libraries for the work of a verification. It survives no crash: see ../README.md. PEER_PROCESSES processes
// share one port.

import cluster from 'node:cluster';
import { createHash, createPrivateKey, createPublicKey, randomBytes, randomUUID, timingSafeEqual, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { SDJwtInstance } from '@sd-jwt/core';
import Fastify from 'fastify';
import Redis from 'ioredis';
import { SignJWT } from 'jose';
import { Agent, request } from 'undici';

const { PEER_PROCESSES, PEER_REDIS, PEER_KEY_SHA256, PEER_APP, PEER_INTENT_KEY, PEER_JWKS, PEER_ISSUER } = process.env;
const WINDOW_S = 900;
const RESULT_S = 86_400;
const KEY_BINDING_S = 300;
const PREFIX = '/api/v1/nationalid-ovse';

if (cluster.isPrimary) {
  let ready = 0;
  cluster.on('listening', (_, { port }) => {
    if (++ready === Number(PEER_PROCESSES)) console.log(JSON.stringify({ address: `127.0.0.1:${port}` }));
  });
  cluster.on('exit', () => process.exit(1));
  for (let number = 0; number < Number(PEER_PROCESSES); number++) cluster.fork();
  process.stdin.on('end', () => process.exit(0)).resume();
} else {
  await serve();
}

async function serve() {
  const redis = new Redis(PEER_REDIS, { enableAutoPipelining: true });
  // Completes a pending transaction.
  redis.defineCommand('complete', {
    numberOfKeys: 1,
    lua: `if redis.call('HGET', KEYS[1], 'state') ~= 'pending' then return 0 end
      redis.call('HSET', KEYS[1], 'state', 'completed', 'result', ARGV[1])
      redis.call('EXPIRE', KEYS[1], ARGV[2]) return 1`,
  });
  const intentKey = createPrivateKey(readFileSync(PEER_INTENT_KEY));
  const issuers = new Map(JSON.parse(readFileSync(PEER_JWKS)).keys.map((jwk) => [jwk.kid, createPublicKey({ key: jwk, format: 'jwk' })]));
  const knownKey = Buffer.from(PEER_KEY_SHA256, 'hex');
  const receivers = new Agent();

  const app = Fastify();
  app.addContentTypeParser('application/xml', { parseAs: 'string' }, (_, body, done) => done(null, body));

  const refuse = (reply, status, message) => reply.code(status).send({ success: false, message });
  const authenticate = async (request, reply) => {
    const key = createHash('sha256').update(request.headers['x-api-key'] ?? '').digest();
    if (!timingSafeEqual(key, knownKey) || request.headers['x-api-app-id'] !== PEER_APP) return refuse(reply, 401, 'Unauthorized');
  };

  app.post(`${PREFIX}/init`, { onRequest: authenticate }, async (request, reply) => {
    const { claims, channel, webhook_url: webhook } = request.body;
    if (!Array.isArray(claims) || !['web', 'qr', 'app'].includes(channel)) return refuse(reply, 400, 'claims and channel are required');
    const txn = randomUUID();
    const secret = randomBytes(16).toString('base64url');
    const base = `http://${request.headers.host}`;
    const now = Math.floor(Date.now() / 1000);
    const payload = {
      txn, i: 'credential', lang: '23', sc: claims.join(' '), pop: 1, ch: channel, m: 1, ac: 'client', sa: 'registration',
      cb: `${base}/callback/${txn}/${secret}`, aud: base, iss: base, iat: now - 10, exp: now + WINDOW_S, jti: randomUUID(),
    };
    const intentJwt = await new SignJWT(payload).setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid: 'intent' }).sign(intentKey);
    const terms = { state: 'pending', secret, aud: base, claims: JSON.stringify(claims), webhook: webhook ?? '' };
    const [[, left]] = await redis.multi().decr('credits').hset(`t:${txn}`, terms).expire(`t:${txn}`, WINDOW_S).exec();
    if (left < 0) return refuse(reply, 402, 'no credits are left');
    return { txnId: txn, intentJwt, expiresAt: new Date((now + WINDOW_S) * 1000).toISOString(), requestUrl: `${base}/v/${txn}` };
  });

  app.get(`${PREFIX}/result/:txn`, { onRequest: authenticate }, async (request, reply) => {
    const { txn } = request.params;
    const [state, result] = await redis.hmget(`t:${txn}`, 'state', 'result');
    if (!state) return refuse(reply, 404, 'unknown transaction');
    if (state === 'completed') return reply.type('application/json').send(result);
    return { success: true, data: { txn_id: txn, pending: true } };
  });

  app.post('/callback/:txn/:secret', async (request, reply) => {
    const { txn, secret } = request.params;
    const [state, known, aud, claims, webhook] = await redis.hmget(`t:${txn}`, 'state', 'secret', 'aud', 'claims', 'webhook');
    if (!state || known !== secret) return refuse(reply, 404, 'unknown transaction');
    const said = /^<Request><TxnID>([^<]*)<\/TxnID><Credential>([^<]*)<\/Credential><\/Request>$/.exec(request.body);
    if (said?.[1] !== txn) return refuse(reply, 400, 'malformed');
    let disclosed;
    try {
      disclosed = await verifyCredential(said[2], txn, aud);
    } catch (error) {
      return refuse(reply, 400, error.message);
    }
    const verified = Object.fromEntries(Object.entries(disclosed).filter(([name]) => !PLAIN.has(name)));
    const data = {
      txn_id: txn, pending: false, verification_passed: Object.keys(verified).length >= JSON.parse(claims).length,
      verified_claims: verified, verified_at: new Date().toISOString(),
    };
    const body = JSON.stringify({ success: true, statusCode: 200, message: 'Success', request_id: randomUUID(), data });
    if (!(await redis.complete(`t:${txn}`, body, RESULT_S))) return refuse(reply, 409, 'it has ended');
    if (webhook) setImmediate(notify, webhook, body);
    const answer = `<Response><TxnID>${txn}</TxnID><ResponseCode>200</ResponseCode><ResponseMsg>Success</ResponseMsg></Response>`;
    return reply.type('application/xml').send(answer);
  });

  // The credential's content besides its disclosed claims.
  const PLAIN = new Set(['iss', 'id', 'iat', 'exp', 'status', 'cnf', '_sd_alg']);

  // The issuer's signature, digests of the disclosures, times, and the holder's proof for this transaction.
  async function verifyCredential(credential, nonce, audience) {
    const es256 = (key) => (text, signature) =>
      verify('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'));
    const header = JSON.parse(Buffer.from(credential.slice(0, credential.indexOf('.')), 'base64url'));
    const issuer = issuers.get(header.kid);
    if (!issuer || header.alg !== 'ES256') throw new Error('the issuer is not trusted');
    const instance = new SDJwtInstance({
      hasher: (data, algorithm) => createHash(algorithm.replace('-', '')).update(Buffer.from(data)).digest(),
      verifier: es256(issuer),
      kbVerifier: (text, signature, payload) => es256(createPublicKey({ key: payload.cnf.jwk, format: 'jwk' }))(text, signature),
    });
    const { payload, kb } = await instance.verify(credential, { keyBindingNonce: nonce });
    const now = Date.now() / 1000;
    if (payload.iss !== PEER_ISSUER || !(payload.exp > now)) throw new Error('the credential is not valid');
    if (kb?.payload.aud !== audience || Math.abs(kb.payload.iat - now) > KEY_BINDING_S) throw new Error('the key binding is for something else');
    return payload;
  }

  async function notify(url, body) {
    try {
      const { body: answer } = await request(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body, dispatcher: receivers });
      await answer.dump();
    } catch {
      // One attempt, not recorded.
    }
  }

  await app.listen({ host: '127.0.0.1', port: 0 });
}
