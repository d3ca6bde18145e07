import { z } from 'zod';
import { fallbackLimits } from '../contract/plans.js';
import type { Definition, PlanOf, ScopeOf, WindowOf } from '../definition/definition.js';
import { instant, integer, text } from '../operations/input.js';
import { SHOWN_DAYS } from '../usage/store.js';

/** PostgreSQL stores limits as 32-bit integers. */
const MAX_LIMIT = 2 ** 31 - 1;
/** Longer than any hint, and too short to fill a log. */
const MAX_HINT_LENGTH = 200;

/** The API key that asks, as clients get it. */
export interface OwnKey<
  Plan extends string = string,
  Scope extends string = string,
  WindowName extends string = string,
> {
  name: string;
  hint: string;
  plan: Plan;
  scopes: Scope[];
  createdAt: string;
  expiresAt: string | null;
  bannedUntil: string | null;
  limits: {
    window: WindowName;
    limit: number;
    remaining: number;
    resetsAt: string;
    shared: boolean;
  }[];
  usage: {
    day: string;
    operation: string;
    requests: number;
    denied: number;
    deprecated: boolean;
  }[];
}

/** The schemas of the operations. */
export function createKeySchemas<Of extends Definition>(definition: Of) {
  const { identity, scopes, windows } = definition;
  const limitsOfPlan = fallbackLimits(definition);
  const example = {
    name: 'shop',
    hint: `${identity.keyPrefix}live_4fK2`,
    plan: definition.fallbackPlan,
    scopes: scopes.filter((each) => each.endsWith(':read')),
    createdAt: '2026-01-31T09:30:00.000Z',
    expiresAt: null,
    bannedUntil: null,
    limits: windows.flatMap(({ name, field, lengthMs }) => {
      const limit = limitsOfPlan[field];
      const resetsAt = new Date(Date.parse('2026-01-31T09:45:00Z') + lengthMs).toISOString();
      return limit === undefined
        ? []
        : { window: name, limit, remaining: limit - 1, resetsAt, shared: false };
    }),
    usage: [
      { day: '2026-01-31', operation: identity.mainOperation, requests: 48, denied: 0, deprecated: false },
      { day: '2026-01-31', operation: 'getKey', requests: 12, denied: 0, deprecated: false },
      {
        day: '2026-01-30',
        operation: identity.mainOperation,
        requests: 1_000,
        denied: 217,
        deprecated: false,
      },
    ],
  } as const;

  const plan = z
    .enum(Object.keys(definition.plans))
    .meta({ id: 'Plan', description: 'The plan that decides on the limits' });
  /** Later versions may add scopes. The document says so by alternatives, as it does for error codes. */
  const scope = z.enum(scopes).meta({
    id: 'Scope',
    description: 'What an API key can allow: one of these, or one that a later version adds',
    override: ({ jsonSchema }) => {
      jsonSchema.anyOf = [{ type: 'string', enum: [...scopes] }, { type: 'string' }];
      delete jsonSchema.enum;
    },
  });

  const keyLimit = z
    .object({
      window: z
        .enum(windows.map(({ name }) => name))
        .meta({ description: 'The window that the limit is for' }),
      limit: integer(1, MAX_LIMIT).meta({ description: 'Requests allowed in the window' }),
      remaining: integer(0, MAX_LIMIT).meta({ description: 'Requests left in the window' }),
      resetsAt: instant('When the window ends, rounded up to a second'),
      shared: z.boolean().meta({
        description: 'Whether all keys of the same customer count together, each by its own limits',
      }),
    })
    .meta({ id: 'KeyLimit', description: 'A limit of an API key, and what is left of it' });

  const operationUsage = z
    .object({
      day: z.iso.date().meta({
        description: 'The day (UTC), as YYYY-MM-DD',
        override: ({ jsonSchema }) => void delete jsonSchema.pattern,
      }),
      operation: z.string().meta({
        description: 'The name of the operation, or mcp for requests denied before their operation was known',
      }),
      requests: integer(0, Number.MAX_SAFE_INTEGER).meta({
        description: 'How many requests of the key were admitted',
      }),
      denied: integer(0, Number.MAX_SAFE_INTEGER).meta({
        description: 'How many further requests a limit or a ban refused',
      }),
      deprecated: z.boolean().meta({ description: 'Whether the operation is deprecated' }),
    })
    .meta({ id: 'OperationUsage', description: 'How often an API key has called an operation on a day' });

  /** Compared with the hint of the key that is sent, which may be the old or the new one during a rotation. */
  const ownHint = z
    .object({
      hint: text(1, MAX_HINT_LENGTH).meta({
        description: 'The hint of the key itself, as getKey shows it: any other hint changes nothing',
        examples: [example.hint],
      }),
    })
    .meta({ id: 'OwnHint', examples: [{ hint: example.hint }] });

  const key = z
    .object({
      name: z.string().meta({ description: 'What the operator of the service has named the key' }),
      hint: z
        .string()
        .meta({ description: 'The first characters of the key that was sent, to tell it from others' }),
      plan,
      scopes: z.array(scope).meta({ description: 'What the key allows' }),
      createdAt: instant('When the key was issued'),
      expiresAt: instant('When the key stops working')
        .nullable()
        .meta({ description: 'When the key stops working (RFC 3339, UTC); null if it does not expire' }),
      bannedUntil: instant('Until when all other requests of the key are denied')
        .nullable()
        .meta({
          description:
            'Until when all other requests of the key are denied, because it kept sending while it was over its limit, or ' +
            'the operator has banned it (RFC 3339, UTC); null if it is not banned',
        }),
      limits: z.array(keyLimit).meta({ description: 'The limits of the key, and what is left of each' }),
      usage: z.array(operationUsage).meta({
        description: `What the key has called in the last ${SHOWN_DAYS} days (UTC), newest first, up to half a minute ago`,
      }),
    })
    .meta({ id: 'Key', description: 'The API key that asks', examples: [example] });
  type Shown = OwnKey<PlanOf<Of>, ScopeOf<Of>, WindowOf<Of>>;
  return { ownHint, key: key as unknown as z.ZodType<Shown, Shown> };
}
