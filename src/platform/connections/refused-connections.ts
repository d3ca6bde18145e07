import type pg from 'pg';
import { readCode } from './outage.js';
import type { PoolSize } from './pool-size.js';

/** SQLSTATE too_many_connections: of the server, the database or the role. */
const TOO_MANY_CONNECTIONS = '53300';
/** How long a pool does without a further connection after one was refused. */
const RETRY_AFTER_MS = 30_000;
/** How often a pool checks whether another one, which is opening its first connection, has it. */
const OPENING_POLL_MS = 20;
/** How often `onRefused` is called at most. */
const NOTICE_INTERVAL_MS = 3_600_000;

type Callback = (
  error?: Error,
  client?: pg.PoolClient,
  release?: (destroy?: Error | boolean) => void,
) => void;

/** A pool of the process, and how many connections the server allows it. */
interface Member {
  readonly size: PoolSize;
  /** The pool's own `connect`, which fails when the server refuses */
  readonly connect: (callback: Callback) => void;
  refusedAtMs: number;
}

/**
 * Lets the pools of a process go on where the server allows fewer connections than their sizes. A pool that is refused a
 * connection waits for those that it has. A pool without any borrows one of another pool, whose settings differ only in how
 * statements are planned. After half a minute the next request that needs a further connection tries again.
 *
 * @param onRefused called with a refusal after which the process goes on, once an hour at most
 */
export function goOnWhenRefused(sizes: readonly PoolSize[], onRefused: (error: Error) => void): void {
  const members = sizes.map(
    (size): Member => ({
      size,
      connect: size.pool.connect.bind(size.pool) as Member['connect'],
      refusedAtMs: Number.NEGATIVE_INFINITY,
    }),
  );
  let noticedAtMs = Number.NEGATIVE_INFINITY;
  const noteRefusal = (member: Member, error: Error) => {
    const { size } = member;
    member.refusedAtMs = performance.now();
    size.allowed = Math.max(1, size.held) + size.orphaned;
    const goesOn = members.some((each) => each.size.held > 0);
    if (!goesOn || member.refusedAtMs < noticedAtMs + NOTICE_INTERVAL_MS) return;
    noticedAtMs = member.refusedAtMs;
    onRefused(error);
  };
  const connect = (member: Member, callback: Callback, untilMs: number, refusal?: Error): void => {
    const from = findSource(member, members) ?? (refusal === undefined ? member : undefined);
    if (from === undefined) {
      const isOpening = members.some(({ size }) => size.pool.totalCount > 0);
      if (isOpening && performance.now() < untilMs)
        setTimeout(() => connect(member, callback, untilMs, refusal), OPENING_POLL_MS);
      else callback(refusal);
      return;
    }
    from.connect((error, client, release) => {
      if (error !== undefined && readCode(error) === TOO_MANY_CONNECTIONS) {
        noteRefusal(from, error);
        connect(member, callback, untilMs, error);
      } else callback(error, client, release);
    });
  };
  for (const member of members) {
    const { pool } = member.size;
    const connectInTime = (callback: Callback) =>
      connect(member, callback, performance.now() + (pool.options.connectionTimeoutMillis ?? 0));
    const connectOrReject = () =>
      new Promise<pg.PoolClient | undefined>((resolve, reject) => {
        connectInTime((error, client) => (error ? reject(error) : resolve(client)));
      });
    pool.connect = ((callback?: Callback) =>
      callback ? connectInTime(callback) : connectOrReject()) as pg.Pool['connect'];
  }
}

/** The pool to take a connection from; undefined if no pool has any. */
function findSource(member: Member, members: readonly Member[]): Member | undefined {
  const { size, refusedAtMs } = member;
  if (performance.now() > refusedAtMs + RETRY_AFTER_MS) {
    size.allowed = size.most;
    return member;
  }
  if (size.held > 0) return member;
  // The pool that can spare one best: one with an idle connection, and of several the one with the most.
  const rank = (other: Member) => (other.size.pool.idleCount > 0 ? other.size.most : 0) + other.size.held;
  return members.filter((other) => other.size.held > 0).sort((a, b) => rank(b) - rank(a))[0];
}
