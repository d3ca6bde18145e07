#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import { addClientCommand } from './client-command.js';

const program = new Command('store-tools').description('what the developers of a store need').exitOverride();
addClientCommand(program);

try {
  await program.parseAsync();
} catch (error) {
  // Commander has printed its message; it reports help, too, as an error.
  if (error instanceof CommanderError) process.exit(error.exitCode === 0 ? 0 : 2);
  // The platform's errors for operators have an exit code, as those of this package.
  const isExpected = error instanceof Error && 'exitCode' in error;
  console.error(isExpected ? error.message : error);
  process.exitCode = isExpected ? Number(error.exitCode) : 1;
}
