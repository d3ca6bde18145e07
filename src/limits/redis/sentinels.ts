import { Redis, type RedisOptions } from 'ioredis';
import type { SentinelUrl } from './urls.js';

const RETRY_DELAY_MS = 200;
/** A sentinel that hangs accepts the connection and the question nevertheless. */
const ANSWER_TIMEOUT_MS = 500;
const WATCH_RETRY_DELAY_MS = 1_000;
/** The channel on which each sentinel announces that it follows another primary: `name host port host port` */
const CHANNEL = '+switch-master';

/** The connection to the primary that the sentinels name. They are asked in turn, for each connection anew. */
export function toSentinelOptions(url: SentinelUrl) {
  const { sentinels, name, username, password, sentinelUsername, sentinelPassword, db, isTls } = url;
  return {
    sentinels: [...sentinels],
    name,
    db,
    ...(username && { username }),
    ...(password && { password }),
    ...(sentinelUsername && { sentinelUsername }),
    ...(sentinelPassword && { sentinelPassword }),
    ...(isTls && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true }),
    sentinelRetryStrategy: () => RETRY_DELAY_MS,
    sentinelCommandTimeout: ANSWER_TIMEOUT_MS,
    // Those that are configured, and no others: what sentinels say of each other may be addresses of another network.
    updateSentinels: false,
  } satisfies RedisOptions;
}

/** The reason in an error of ioredis about sentinels, if it has one. */
export function readSentinelError({ message }: Error, { name }: SentinelUrl): Error | undefined {
  // `watchSentinels` reports what prevents a connection; ioredis hides it. It also reports all Sentinels as unreachable
  // once it has asked each of them, whatever they replied.
  if (/Connection is closed\.$|^All sentinels are unreachable/.test(message)) return undefined;
  const [, address] = /^connected to sentinel (\S+) .* invalid reply: null$/.exec(message) ?? [];
  return new Error(address ? `sentinel ${address} knows no primary of the name ${name}` : message);
}

export interface SentinelWatchOptions {
  readonly url: SentinelUrl;
  /** Once per Sentinel: each announces the same promotion, up to a second after the first. */
  readonly onPromotion: (host: string, port: number) => void;
  readonly onError: (error: Error) => void;
}

/**
 * Subscribes to the Sentinels, so that a replaced primary is abandoned even if it still responds. ioredis' own
 * `failoverDetector` reacts to promotions of other primaries, too, and prints a stack for every Sentinel that it cannot
 * reach.
 */
export function watchSentinels({ url, onPromotion, onError }: SentinelWatchOptions): { close(): void } {
  const { sentinels, name, sentinelUsername, sentinelPassword, isTls } = url;
  const watches = sentinels.map(({ host, port }) => {
    const watch = new Redis({
      host,
      port,
      ...(sentinelUsername && { username: sentinelUsername }),
      ...(sentinelPassword && { password: sentinelPassword }),
      ...(isTls && { tls: {} }),
      connectTimeout: 1_000,
      enableReadyCheck: false,
      autoResubscribe: false,
      retryStrategy: () => WATCH_RETRY_DELAY_MS,
    });
    const report = ({ message }: Error) => onError(new Error(`sentinel ${host}:${port}: ${message}`));
    watch.on('error', report);
    watch.on('ready', () => watch.subscribe(CHANNEL).catch(report));
    watch.on('message', (_channel: string, message: string) => {
      const [promotedName, , , host = '', port] = message.split(' ');
      if (promotedName === name) onPromotion(host, Number(port));
    });
    return watch;
  });
  return {
    close() {
      for (const watch of watches) watch.disconnect();
    },
  };
}
