import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Logger } from 'pino';
import { readCode, toReported } from '../connections/outage.js';
import { BODY_LIMIT_BYTES } from '../contract/bounds.js';
import type { Definition } from '../definition/definition.js';
import { LIVE_PATH, METRICS_PATH, PROBE_PATHS } from '../monitoring/probes.js';
import { toInstalledCommands } from '../operator-errors/installed-commands.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import { runWithJson } from './json-input.js';
import type { KeyCommand, KeyTools } from './key-command.js';
import { createKeyCommands, toParts } from './keys-command.js';
import type { Operator } from './operator-tokens.js';

const TIMEOUTS = {
  // How long a request may take to arrive
  headersTimeout: 10_000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 5_000,
  // Longer than clients keep a connection, which might otherwise send on one that is just being closed
  keepAliveTimeout: 72_000,
};
/** nginx's status for a client that has left before its response. */
const CLIENT_CLOSED_REQUEST = 499;
/** By the exit code of the command */
const STATUSES: Readonly<Record<number, number>> = { 1: 409, 2: 400, 3: 404, 4: 503 };
const CODES: Readonly<Record<number, string>> = {
  400: 'invalid_request',
  401: 'invalid_token',
  403: 'origin_not_allowed',
  404: 'not_found',
  409: 'conflict',
  413: 'payload_too_large',
  500: 'internal_error',
  503: 'service_unavailable',
};
const HEADERS: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  401: { 'WWW-Authenticate': 'Bearer' },
  // What follows is not read.
  413: { Connection: 'close' },
  503: { 'Retry-After': '1' },
};

const utf8 = new TextDecoder('utf-8', { fatal: true });

export interface KeyServerOptions {
  readonly definition: Definition;
  /** What a command works with, so that the record of keys names the program */
  readonly toolsOf: (operator: Operator) => KeyTools;
  /** The program whose token an Authorization header has */
  readonly findOperator: (authorization: string | undefined) => Operator | undefined;
  /** Resolves with a warning, if there is one, while the database can be used */
  readonly checkReadiness: () => Promise<string | undefined>;
  readonly log: Logger;
}

/** A request that no command gets. */
class KeyServerError extends Error {
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/**
 * The commands of `keys` over HTTP, for programs of the operator: `POST /create` with `{"name": "shop", "plan": "pro"}`
 * responds with what `keys create --name shop --plan pro --json` prints. The log has a line for each request, and nothing of
 * what was sent or returned.
 */
export function createKeyServer(options: KeyServerOptions): Server {
  const { definition } = options;
  const commands = new Map(createKeyCommands(definition).map((command) => [`/${command.name}`, command]));
  const server = createServer(TIMEOUTS, async (request, response) => {
    const startedAt = performance.now();
    // Afterwards the socket may be closed.
    const address = request.socket.remoteAddress;
    const reqId = request.headers['x-request-id'];
    const closed = new Promise((resolve) => response.once('close', resolve));
    response.on('error', () => {});
    response.setHeader('Content-Type', 'application/json').setHeader('Cache-Control', 'no-store');
    const operator = options.findOperator(request.headers.authorization);
    const failure = await respond(request, response, operator, server.listening, commands, options).catch(
      (error: unknown) => sendError(definition.root, response, error),
    );
    await closed;
    if (!server.listening) server.closeIdleConnections();
    const { method, url = '' } = request;
    const status =
      failure?.status ?? (response.writableFinished ? response.statusCode : CLIENT_CLOSED_REQUEST);
    const durationMs = Math.round((performance.now() - startedAt) * 10) / 10;
    const level = status >= 500 ? 'error' : PROBE_PATHS.includes(url) ? 'debug' : 'info';
    const command = commands.get(url)?.name;
    const program = operator?.name;
    options.log[level](
      { method, command, program, status, ...failure, durationMs, address, reqId },
      'request',
    );
  });
  return server;
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  operator: Operator | undefined,
  isListening: boolean,
  commands: ReadonlyMap<string, KeyCommand>,
  { definition, toolsOf, checkReadiness }: KeyServerOptions,
): Promise<undefined> {
  const { method = '', url = '', headers } = request;
  // Only a browser sends one, for whichever page it shows.
  if (headers.origin !== undefined) throw new KeyServerError(403, 'Requests with an Origin are refused.');
  if (PROBE_PATHS.includes(url) && ['GET', 'HEAD'].includes(method))
    return respondToProbe(url, response, isListening, checkReadiness, definition);
  if (operator === undefined)
    throw new KeyServerError(401, 'Send a token of KEYS_TOKEN as: Authorization: Bearer <token>');
  const command = method === 'POST' ? commands.get(url) : undefined;
  if (command === undefined)
    throw new KeyServerError(
      404,
      `POST the options of a command as JSON to ${[...commands.keys()].join(', ')}.`,
    );
  const result = await runWithJson(command, await readJson(request), toolsOf(operator));
  const parts = Readable.from(toParts(result, { json: true })).on('error', () => {});
  // What fails before the first part is ready still gets a status of its own.
  await once(parts, 'readable');
  await pipeline(parts, response);
}

async function respondToProbe(
  path: string,
  response: ServerResponse,
  isListening: boolean,
  checkReadiness: KeyServerOptions['checkReadiness'],
  { identity }: Definition,
): Promise<undefined> {
  if (path === LIVE_PATH) return void response.end('{"status":"ok"}\n');
  if (path === METRICS_PATH) {
    const isReady = await checkReadiness().then(
      () => true,
      () => false,
    );
    response.setHeader('Content-Type', 'text/plain; version=0.0.4; charset=utf-8');
    // 1 while keys can be managed
    const metric = `${identity.metricsPrefix}keys_ready`;
    return void response.end(`# TYPE ${metric} gauge\n${metric} ${Number(isReady)}\n`);
  }
  if (!isListening) throw new KeyServerError(503, 'The server is closing.');
  const warning = await checkReadiness().catch((cause: unknown) => {
    throw new KeyServerError(503, 'The database cannot be used: the log says why.', { cause });
  });
  response.end(`${JSON.stringify({ status: 'ok', warning })}\n`);
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let length = 0;
  // To destroy a request would close its connection before the response.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    length += chunk.length;
    if (length > BODY_LIMIT_BYTES)
      throw new KeyServerError(413, `The body is larger than ${BODY_LIMIT_BYTES / 1024} KiB.`);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(utf8.decode(Buffer.concat(chunks)) || '{}');
  } catch {
    throw new KeyServerError(400, 'The body must be JSON in UTF-8.');
  }
}

/** Returns what the log says of it; undefined for a client that has left. */
function sendError(root: URL, response: ServerResponse, error: unknown) {
  if (/^(?:ERR_STREAM_|ECONNRESET)/.test(readCode(error))) return void response.destroy();
  const reported = toReported(error);
  const status =
    reported instanceof KeyServerError
      ? reported.status
      : (reported instanceof OperatorError && STATUSES[reported.exitCode]) || 500;
  const code = CODES[status];
  const message =
    status === 500
      ? 'Something went wrong: the log says what.'
      : toInstalledCommands(root, (reported as Error).message);
  // A report that breaks off must not pass for a whole one.
  if (response.headersSent) response.destroy();
  else response.writeHead(status, HEADERS[status]).end(`${JSON.stringify({ code, message, status })}\n`);
  return { status, code, ...(status >= 500 && { err: error }) };
}
