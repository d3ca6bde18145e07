import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  LEAST_CONNECTIONS,
  MOST_CONNECTIONS,
} from '../packages/platform/src/connections/connection-limit.js';
import { BODY_LIMIT_BYTES, IDEMPOTENCY_TTL_HOURS } from '../packages/platform/src/contract/bounds.js';
import { STATEMENT_TIMEOUT_MS } from '../packages/platform/src/timing/timeouts.js';
import { FLUSH_INTERVAL_MS } from '../packages/platform/src/usage/counter.js';

const bodyLimit = `${BODY_LIMIT_BYTES / 1024} KiB`;
const flush = `${FLUSH_INTERVAL_MS / 1000} s`;

// Those of the guides are in test/guides/facts.test.ts.
test.each([
  ['docs/capacity.md', `opens up to ${MOST_CONNECTIONS} connections`],
  ['docs/capacity.md', `fewer than ${LEAST_CONNECTIONS} end the start`],
  ['docs/capacity.md', `Plan \`max_connections\` for ${MOST_CONNECTIONS + LEAST_CONNECTIONS} per process`],
  ['docs/capacity.md', `for ${IDEMPOTENCY_TTL_HOURS} hours, indexes included`],
  ['docs/configuration.md', `up to ${MOST_CONNECTIONS} connections`],
  ['docs/configuration.md', `and needs ${LEAST_CONNECTIONS}.`],
  ['docs/configuration.md', `more than the service's ${bodyLimit}`],
  ['docs/deploy/nginx.conf', `above the service's ${bodyLimit}`],
  ['docs/configuration.md', `ends a statement after ${STATEMENT_TIMEOUT_MS / 1000} s`],
  ['docs/database.md', `each node, about every ${flush}`],
  ['docs/database.md', `lock a row for more than ${STATEMENT_TIMEOUT_MS / 1000} s`],
  ['docs/deploy.md', `up to ${MOST_CONNECTIONS} connections to PostgreSQL per pod`],
  ['docs/deploy/kubernetes.yaml', `opens up to ${MOST_CONNECTIONS} connections`],
  ['docs/operations.md', `of the requests in the last ${flush}`],
  ['docs/your-own.md', `bodies are JSON of at most ${bodyLimit}`],
  ['SECURITY.md', `Bodies are limited to ${bodyLimit}`],
])('%s says what the code does: %s', (path, fact) => {
  expect(readFileSync(path, 'utf8').replaceAll(/\s+(?:# )?/g, ' ')).toContain(fact);
});
