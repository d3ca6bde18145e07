import type { AnyTRPCRouter } from '@trpc/server';
import { z } from 'zod';
import { listOperations } from '../../src/operations/list-operations.js';

/** An operation of a router, and where it is called. */
export function findOperation<Name extends string>(router: AnyTRPCRouter, name: Name) {
  const operation = listOperations(router).find((each) => each.name === name);
  if (operation === undefined) throw new Error(`There is no operation ${name}`);
  const { path, scope, input } = operation;
  const object = (input instanceof z.ZodPrefault ? input.unwrap() : input) as z.ZodObject;
  return {
    /** Of the procedure, and of the tool */
    name,
    /** Over REST. Of a read it is the pattern of its route, with the name of its parameter. */
    path: `/v1${path}`,
    /** As the document has it: relative to the version */
    documentPath: path,
    /** Over tRPC */
    trpc: `/trpc/${name}`,
    scope: scope as string,
    /** The names of the members of its input */
    members: Object.keys(object.shape),
    /** and of those that must not be null */
    notNullable: Object.entries<z.ZodType>(object.shape as Record<string, z.ZodType>)
      .filter(([, member]) => !member.safeParse(null).success)
      .map(([member]) => member),
  };
}
