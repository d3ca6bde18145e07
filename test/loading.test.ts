import { runNode } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { withoutModule } from '../packages/platform/test/support/missing-module.js';
import { asService, createTestDatabase } from './support/service.js';

test.each(['@prisma/adapter-pg', '@prisma/client/runtime/client', '@modelcontextprotocol/server'])(
  'what requests need is loaded before the process listens: without %s it ends with the reason, for its supervisor',
  async (specifier) => {
    const environment = { DATABASE_URL: asService(await createTestDatabase()), PORT: '0', LOG_LEVEL: 'info' };
    const service = runNode([...withoutModule(specifier), 'dist/main.js'], environment);
    expect(await service.ended).toBe(1);
    expect(service.output()).toMatch(/Cannot find package/);
    expect(service.output()).not.toMatch(/listening/i);
  },
);

test.each(['@trpc/server', '@trpc/server/rpc', 'fastify', '@prisma/client/runtime/client'])(
  'the help of a command loads nothing of %s, which would take longer than the help',
  async (specifier) => {
    const help = runNode([...withoutModule(specifier), 'dist/cli.js', 'keys', '--help'], {});
    expect(await help.ended, help.output()).toBe(0);
    expect(help.output()).toContain('issue and manage API keys');
  },
);
