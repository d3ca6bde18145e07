#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import {
  type Change,
  type Comparison,
  compareDocuments,
  type Document,
  DocumentError,
  describeChanges,
} from './compatibility.js';

const USAGE = `Usage: compatibility [--json] OLD.json NEW.json

Compares two versions of an OpenAPI 3 document.

  --json   prints the result as JSON
  --help   prints this

Exit code: 0 if NEW breaks no rule, 1 if it breaks one, 2 if the two could not be compared.
`;

/** What ends the command before it has compared anything. */
class CommandError extends Error {}

try {
  const { values, positionals } = readArguments();
  const [before, after, ...rest] = positionals;
  if (values.help) process.stdout.write(USAGE);
  else if (before === undefined || after === undefined || rest.length > 0) throw new CommandError(USAGE);
  else compare(before, after, values.json === true);
} catch (error) {
  // Also for unforeseen errors, because 1 says that there was a comparison.
  process.exitCode = 2;
  const isExpected = error instanceof CommandError;
  console.error(isExpected ? error.message.trimEnd() : error);
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: { json: { type: 'boolean' }, help: { type: 'boolean' } },
    });
  } catch (error) {
    throw new CommandError(`${(error as Error).message}\n\n${USAGE}`);
  }
}

function compare(before: string, after: string, isJson: boolean): void {
  const comparison = compareFiles(before, after);
  if (isJson) process.stdout.write(toJson(comparison));
  else print(comparison, `${after} against ${before}`);
  if (comparison.breaking.length > 0) process.exitCode = 1;
}

function compareFiles(before: string, after: string): Comparison {
  const [old, current] = [readDocument(before), readDocument(after)];
  try {
    return compareDocuments(old, current, Date.now());
  } catch (error) {
    if (error instanceof DocumentError)
      throw new CommandError(`${after} against ${before}: ${error.message}`);
    throw error;
  }
}

function readDocument(path: string): Document {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Document;
  } catch (error) {
    const advice =
      error instanceof SyntaxError ? ' (a document in YAML has to be converted to JSON first)' : '';
    throw new CommandError(`${path} cannot be read: ${(error as Error).message}${advice}`);
  }
}

function print(comparison: Comparison, what: string): void {
  const { breaking, experimental } = describeChanges(comparison);
  for (const line of experimental) console.log(line);
  for (const line of breaking) console.error(line);
  console.log(`${what}: ${comparison.breaking.length} breaking changes`);
}

/** The changes, each as one flat object. */
function toJson({ breaking, experimental }: Comparison): string {
  const flatten = ({ operation, violation }: Change) => ({ operation, ...violation });
  const report = { breaking: breaking.map(flatten), experimental: experimental.map(flatten) };
  return `${JSON.stringify(report, undefined, 2)}\n`;
}
