import type {
  TRPC_ERROR_CODE_KEY,
  TRPC_ERROR_CODE_NUMBER,
  TRPCBuiltRouter,
  TRPCMutationProcedure,
  TRPCQueryProcedure,
} from '@trpc/server';
import type { AppRouter as ServiceRouter } from '../../../src/router.js';

/*
 * The service's router as clients see it: without the context and the metadata, whose types belong to the service.
 *
 * An alias of the service's types would drag its sources into the published declarations. The constants exist only
 * for their inferred types, which the compiler has to write out in full; this module is imported for types alone.
 */

type ServiceErrorShape = ServiceRouter['_def']['_config']['$types']['errorShape'];

const procedures = writeOutProcedures<ServiceRouter['_def']['record']>();
const errorCode = writeOutCode<ServiceErrorShape>();
const scope = writeOutScope<ServiceErrorShape>();

export type AppRouter = TRPCBuiltRouter<
  { ctx: object; meta: object; errorShape: ErrorShape; transformer: false },
  typeof procedures
>;

/** Names what went wrong. */
export type ErrorCode = typeof errorCode;

/** What an API key can allow. */
export type Scope = typeof scope;

/** The body of every error, over both protocols */
export interface ErrorBody<Code = ErrorCode> {
  readonly code: Code;
  readonly message: string;
  /** The HTTP status */
  readonly status: number;
}

/** What is wrong with each invalid field, by its name: `{ name: 'is required' }` */
export type FieldErrors = Readonly<Record<string, string>>;

/** tRPC's error shape with that body in it */
interface ErrorShape<Code = ErrorCode> {
  message: string;
  code: TRPC_ERROR_CODE_NUMBER;
  data: {
    code: TRPC_ERROR_CODE_KEY;
    httpStatus: number;
    path?: string;
    error: ErrorBody<Code>;
    fields?: FieldErrors;
    scope?: Scope;
  };
}

type PublicProcedure<Procedure> =
  Procedure extends TRPCQueryProcedure<infer Definition>
    ? TRPCQueryProcedure<{ input: Definition['input']; output: Definition['output']; meta: unknown }>
    : Procedure extends TRPCMutationProcedure<infer Definition>
      ? TRPCMutationProcedure<{ input: Definition['input']; output: Definition['output']; meta: unknown }>
      : never;

function writeOutProcedures<Procedures>() {
  return {} as { [Name in keyof Procedures]: PublicProcedure<Procedures[Name]> };
}

function writeOutCode<Shape extends ErrorShape<string>>() {
  return '' as Shape['data']['error']['code'];
}

function writeOutScope<Shape extends { data: { scope?: string } }>() {
  return '' as NonNullable<Shape['data']['scope']>;
}
