/** What the tests of a store use. It works with any test runner, and is no part of a service. */

export { findRedis, freePort, RedisServer, startRedis, until } from '@animal-store/limits/testing';
export {
  type Caller,
  createCaller,
  patient,
  post,
  rpcPath,
  type TestResponse,
  untilServed,
} from './callers.js';
export type { Outcome } from './command.js';
export { execute } from './execute.js';
export { message, oldToolCall, REVISION, toolCall } from './mcp.js';
export {
  type Environment,
  INHERITED,
  type Program,
  type RunOptions,
  runCommand,
  runNode,
  untilListening,
} from './process.js';
export { createPrograms, readJson } from './programs.js';
export {
  type Answer,
  createProtocols,
  PROTOCOLS,
  type Protocol,
  type Protocols,
  type Send,
} from './protocols.js';
export { asServiceRole, createTestDatabase, prepareServers, readServers, type Servers } from './servers.js';
export { type StoreOptions, type StoreUnderTest, startStore } from './store-under-test.js';
export { createTemporaryFolder } from './temporary-folder.js';
