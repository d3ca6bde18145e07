import type { Tool as ListedTool } from '@modelcontextprotocol/server';
import type { AnyTRPCProcedure, AnyTRPCRouter } from '@trpc/server';
import type { z } from 'zod';
import { IDEMPOTENCY_TTL_HOURS } from '../../contract/bounds.js';
import { IDEMPOTENCY_KEY } from '../../operations/idempotency-key.js';
import { isPage, type Operation } from '../../operations/list-operations.js';
import { type JsonSchema, toArgumentsSchema, toToolSchema } from './schemas.js';

/** The argument that stands for an Idempotency-Key, because models choose arguments, not headers. */
export const IDEMPOTENCY_ARGUMENT = 'idempotencyKey';

const IDEMPOTENCY_SCHEMA: JsonSchema = {
  type: 'string',
  pattern: IDEMPOTENCY_KEY.source,
  description:
    'Makes the call safe to repeat. Choose a new value, such as a UUID, for each thing that you want to add, and send the ' +
    'same value with the same arguments whenever you repeat that call, for example because no result arrived. ' +
    `Within ${IDEMPOTENCY_TTL_HOURS} hours the thing is added once, and every call returns it.`,
};

const ERROR_SCHEMA: JsonSchema = { type: 'object', required: ['code', 'message', 'status'] };

const PAGE_DESCRIPTION =
  'Returns `items` and `nextCursor`. While `nextCursor` is not null, more items follow: call again with it as `cursor`, and with ' +
  'the same other arguments.';

/** An operation as a tool, ready to be called. */
export interface Tool {
  readonly operation: Operation;
  readonly procedure: AnyTRPCProcedure;
  /** Whether the tool returns `{ items, nextCursor }` instead of a bare array, because no header reaches a model. */
  readonly isPage: boolean;
  /** As `tools/list` shows it */
  readonly listed: ListedTool;
}

/**
 * The tools by their names, in the order of the operations.
 *
 * @throws TypeError when an operation has an argument named IDEMPOTENCY_ARGUMENT
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
      // By HTTP's definition (RFC 9110, section 9.2.2). An Idempotency-Key makes one call idempotent, but a model may leave
      // it out.
      idempotentHint: method !== 'POST' && method !== 'PATCH',
      openWorldHint: false,
      ...ownHints,
    },
  };
}

/** A description without its note on stability, which is for people who write programs. */
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
 * The schema of a tool's result, or of its error. Clients built on the SDK's first version validate errors, too, and
 * would show a validation failure instead of the error. So the schema also allows the few members that identify an error;
 * the server's instructions describe them.
 */
function describeOutput(operation: Operation, output: z.ZodType): JsonSchema {
  const success = isPage(operation) ? describePage(output) : toToolSchema(output, 'output');
  return { ...(success.type === 'object' && { type: 'object' }), anyOf: [success, ERROR_SCHEMA] };
}

function describePage(output: z.ZodType): JsonSchema {
  const nextCursor: JsonSchema = {
    // Alternatives, because not every client can map a list of types to what its model takes.
    anyOf: [{ type: 'integer' }, { type: 'null' }],
    description: 'The `cursor` of the next page; null if no more follow',
  };
  const properties = { items: toToolSchema(output, 'output'), nextCursor };
  return { type: 'object', properties, required: ['items', 'nextCursor'] };
}
