import type { Tool as ListedTool } from '@modelcontextprotocol/server';
import type { AnyTRPCProcedure, AnyTRPCRouter } from '@trpc/server';
import type { z } from 'zod';
import { IDEMPOTENCY_KEY } from '../../operations/idempotency-key.js';
import { isPage, type Operation } from '../../operations/list-operations.js';
import { type JsonSchema, toArgumentsSchema, toToolSchema } from './schemas.js';

/** The argument that stands for an Idempotency-Key: models choose arguments, not headers. */
export const IDEMPOTENCY_ARGUMENT = 'idempotencyKey';

const IDEMPOTENCY_SCHEMA: JsonSchema = {
  type: 'string',
  pattern: IDEMPOTENCY_KEY.source,
  description:
    'Makes the call safe to repeat. Choose a new value, such as a UUID, for each thing that you want to add, and send the ' +
    'same value with the same arguments whenever you repeat that call, for example because no result arrived: within 24 ' +
    'hours the thing is added once, and every call returns it.',
};

const ERROR_SCHEMA: JsonSchema = { type: 'object', required: ['code', 'message', 'status'] };

const PAGE_DESCRIPTION =
  'Returns `items` and `nextCursor`. While `nextCursor` is not null, more follow: call again with it as `cursor`, and with ' +
  'the other arguments as before.';

/** An operation as a tool, ready to be called. */
export interface Tool {
  readonly operation: Operation;
  readonly procedure: AnyTRPCProcedure;
  /** Whether it returns `{ items, nextCursor }` in place of a bare array, because no header reaches a model. */
  readonly isPage: boolean;
  /** As `tools/list` shows it */
  readonly listed: ListedTool;
}

/**
 * The tools by their names, in the order of the operations.
 *
 * @throws TypeError when an argument of an operation has the name that this protocol needs
 */
export function createTools(
  operations: readonly Operation[],
  router: AnyTRPCRouter,
): ReadonlyMap<string, Tool> {
  return new Map(
    operations
      .filter(({ tool }) => tool !== false)
      .map((operation) => {
        const procedure = router._def.procedures[operation.name] as AnyTRPCProcedure;
        return [operation.name, { operation, procedure, isPage: isPage(operation), listed: list(operation) }];
      }),
  );
}

function list(operation: Operation): ListedTool {
  const { name, summary: title, description, output, method, success, tool } = operation;
  const { description: ownDescription = describe(description), ...ownHints } = tool || {};
  const paragraphs = [ownDescription, isPage(operation) && PAGE_DESCRIPTION];
  return {
    name,
    title,
    description: paragraphs.filter(Boolean).join('\n\n'),
    inputSchema: describeArguments(operation) as ListedTool['inputSchema'],
    ...(output && {
      outputSchema: describeOutput(operation, output) as NonNullable<ListedTool['outputSchema']>,
    }),
    annotations: {
      readOnlyHint: method === 'GET',
      // An operation that declares a 201 destroys nothing.
      destructiveHint: method !== 'GET' && success === undefined,
      // By HTTP's definition (RFC 9110, section 9.2.2). An Idempotency-Key makes one call so, and a model may leave it out.
      idempotentHint: method !== 'POST' && method !== 'PATCH',
      openWorldHint: false,
      ...ownHints,
    },
  };
}

/** Without what is for people who write programs: how far they may rely on it. */
const describe = (description: string | undefined) =>
  description
    ?.split('\n\n')
    .filter((paragraph) => !paragraph.startsWith('Experimental: '))
    .join('\n\n');

function describeArguments({ name, input, idempotent }: Operation): JsonSchema {
  const schema = toArgumentsSchema(input);
  if (!idempotent) return schema;
  if (Object.hasOwn(schema.properties ?? {}, IDEMPOTENCY_ARGUMENT))
    throw new TypeError(`${name}: a member of the input cannot be named ${IDEMPOTENCY_ARGUMENT}`);
  return { ...schema, properties: { ...schema.properties, [IDEMPOTENCY_ARGUMENT]: IDEMPOTENCY_SCHEMA } };
}

/**
 * The schema of what a tool returns, or of the error that it returns instead. Clients built on the SDK's first version
 * validate errors, too, and would show a validation failure in place of the error. So the schema allows an error with as
 * few members as identify one; the server's instructions describe them.
 */
function describeOutput(operation: Operation, output: z.ZodType): JsonSchema {
  const success = isPage(operation) ? describePage(output) : toToolSchema(output, 'output');
  return { ...(success.type === 'object' && { type: 'object' }), anyOf: [success, ERROR_SCHEMA] };
}

function describePage(output: z.ZodType): JsonSchema {
  const nextCursor: JsonSchema = {
    // Not a list of types, which not every client can map to what its model takes.
    anyOf: [{ type: 'integer' }, { type: 'null' }],
    description: 'The `cursor` of the next page; null if no more follow',
  };
  const properties = { items: toToolSchema(output, 'output'), nextCursor };
  return { type: 'object', properties, required: ['items', 'nextCursor'] };
}
