import { maxHeaderSize } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type ServerOptions as HttpServerOptions,
  type OverloadMonitor,
  openServer as openHttpServer,
  type RefusalReason,
} from '@animal-store/http-server';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { BODY_LIMIT_BYTES } from './contract/bounds.js';
import { ApiError } from './errors/api-error.js';
import type { Authenticator } from './keys/authenticator.js';
import type { KeySearch } from './keys/format.js';
import { PROBE_PATHS } from './monitoring/probes.js';
import { type Config, toLocalUrl } from './process/config.js';

export interface ServerOptions {
  readonly config: Pick<Config, 'host' | 'publicUrl' | 'trustProxy' | 'metricsPort' | 'keepAliveSeconds'>;
  readonly log: FastifyBaseLogger;
  readonly authenticator: Pick<Authenticator, 'findKnownId'>;
  readonly mayHaveKey: KeySearch['mayHaveKey'];
  /** Override individual defaults */
  readonly connections?: HttpServerOptions['connections'];
  readonly overload?: HttpServerOptions['overload'];
}

/** The server, which has no routes yet. */
export interface Server {
  readonly app: FastifyInstance;
  readonly overload: OverloadMonitor;
  /** The address that clients use, without a trailing slash. Without a PUBLIC_URL it is known once the server listens. */
  readonly publicUrl: () => string;
  readonly isClosing: () => boolean;
}

export function openServer(options: ServerOptions): Server {
  const { config, log, authenticator, mayHaveKey, connections, overload: limits } = options;
  const { host, publicUrl, metricsPort, trustProxy, keepAliveSeconds } = config;
  const { app, overload } = openHttpServer({
    log,
    trustProxy,
    connections: { keepAliveTimeout: keepAliveSeconds * 1_000, ...connections },
    overload: limits,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    identify({ headers, url = '' }) {
      const id = authenticator.findKnownId(headers.authorization);
      return {
        id,
        isPreferred: id !== undefined || (metricsPort === undefined && PROBE_PATHS.includes(url)),
      };
    },
    refuse: (reason) => REFUSALS[reason],
    mayHaveSecret: mayHaveKey,
    // Without a PUBLIC_URL the address is not known yet, but it is plain http.
    isSecure: publicUrl?.startsWith('https:') ?? false,
  });
  return {
    app,
    overload,
    publicUrl: createPublicUrl(app, host, publicUrl),
    isClosing: endConnectionsWhenClosing(app),
  };
}

/** Responses to bytes that became no request */
const REFUSALS: Readonly<Record<RefusalReason, ApiError>> = {
  malformed: new ApiError('invalid_request', { message: 'The request is not well-formed HTTP/1.1.' }),
  header_too_large: new ApiError('invalid_request', {
    message: `The request line and headers are over ${maxHeaderSize / 1024} KiB.`,
  }),
  too_slow: new ApiError('invalid_request', { message: 'The request did not arrive in time.' }),
  unknown_method: new ApiError('not_implemented', { message: 'The service does not know this method.' }),
  connect: new ApiError('invalid_request', { message: 'CONNECT is not supported.' }),
};

/** Returns a function for the address that clients use, without a trailing slash. */
function createPublicUrl(app: FastifyInstance, host: string, publicUrl: string | undefined): () => string {
  let localUrl = '';
  app.addHook('onListen', async () => {
    localUrl = toLocalUrl(host, (app.server.address() as AddressInfo).port);
  });
  return () => publicUrl ?? localUrl;
}

/** Once the server is closing, ends each connection with its next response. Returns whether it is closing. */
function endConnectionsWhenClosing(app: FastifyInstance): () => boolean {
  let isClosing = false;
  app.addHook('preClose', async () => {
    isClosing = true;
  });
  app.addHook('onSend', (_request, reply, payload, next) => {
    if (isClosing) reply.header('connection', 'close');
    next(null, payload);
  });
  return () => isClosing;
}
