import { Redis } from 'ioredis';
import { PrimaryConnector, ServerConnector } from './connectors.js';
import {
  endInOtherDatabase,
  RECONNECT_DELAY_MS,
  type RedisClientOptions,
  toScripts,
  toServerOptions,
} from './options.js';
import { parseSentinelUrl, type SentinelUrl } from './urls.js';

/** A Sentinel that hangs still accepts the connection and the question. */
const ANSWER_TIMEOUT_MS = 500;
const WATCH_RETRY_DELAY_MS = 1_000;
const WATCH_OPTIONS = {
  connectTimeout: 1_000,
  enableReadyCheck: false,
  autoResubscribe: false,
  Connector: ServerConnector,
  retryStrategy: () => WATCH_RETRY_DELAY_MS,
};
/** The channel on which each Sentinel announces that it follows another primary: `name host port host port` */
const CHANNEL = '+switch-master';

/**
 * A connection to the primary that the Sentinels name, which are asked in turn for each connection. A further connection
 * to each Sentinel lets a replaced primary be abandoned even if it still responds.
 */
export function openPrimary(
  text: string,
  { script, onReady, onClose, onError }: RedisClientOptions,
  reconnect: () => void,
): [Redis, ...Redis[]] {
  const url = parseSentinelUrl(text);
  let address = '';
  const primary = new Redis({
    ...toServerOptions(),
    ...toScripts(script),
    ...url,
    Connector: PrimaryConnector,
    ...(url.tls && { enableTLSForSentinelMode: true }),
    sentinelRetryStrategy: () => RECONNECT_DELAY_MS,
    sentinelCommandTimeout: ANSWER_TIMEOUT_MS,
    // Only the configured Sentinels are asked, because Sentinels may name each other by addresses of another network.
    updateSentinels: false,
    // Called with the address that a Sentinel names, to which the connection is about to be made
    natMap: (named) => {
      address = named;
      return null;
    },
  });
  const report = (error: Error) => {
    const reason = readReason(error, url);
    if (reason) onError(new Error(reason));
  };
  primary.on('sentinelError', report);
  primary.on('error', (error) => report(endInOtherDatabase(primary, error)));
  primary.on('close', onClose);
  primary.on('ready', onReady);
  const onPromotion = (promoted: string) => {
    // Each Sentinel announces the same promotion, up to a second after the first. The promotion may have led to this
    // connection.
    if (promoted !== address) reconnect();
  };
  return [primary, ...watchSentinels(url, onPromotion, onError)];
}

/**
 * ioredis' own `failoverDetector` would do, but for three things: it takes the promotion of any primary, and each
 * announcement of the same one, for the loss of this one; it prints a stack for every attempt to reach a Sentinel, or
 * else never returns to a Sentinel that was restarted; and it does not say why a Sentinel cannot be used.
 */
function watchSentinels(
  { sentinels, name, sentinelUsername = '', sentinelPassword = '', tls }: SentinelUrl,
  onPromotion: (address: string) => void,
  onError: (error: Error) => void,
): Redis[] {
  const user = { username: sentinelUsername, password: sentinelPassword };
  return sentinels.map(({ host, port }) => {
    const watch = new Redis({ ...WATCH_OPTIONS, ...user, ...(tls && { tls }), host, port });
    const report = ({ message }: Error) => onError(new Error(`sentinel ${host}:${port}: ${message}`));
    watch.on('error', report);
    watch.on('ready', () => watch.subscribe(CHANNEL).catch(report));
    watch.on('message', (_channel: string, message: string) => {
      const [promotedName, , , ...address] = message.split(' ');
      if (promotedName === name) onPromotion(address.join(':'));
    });
    return watch;
  });
}

/** ioredis' message about Sentinels, or the reason of the connections that watch them, which ioredis hides. */
function readReason({ message }: Error, { name }: SentinelUrl): string | undefined {
  // ioredis calls all Sentinels unreachable once each has been asked, whatever they replied.
  if (/Connection is closed\.$|^All sentinels are unreachable/.test(message)) return undefined;
  const [, sentinel] = /^connected to sentinel (\S+) .* invalid reply: null$/.exec(message) ?? [];
  return sentinel ? `sentinel ${sentinel} knows no primary of the name ${name}` : message;
}
