/* Written by `npm run docs:update` from the OpenAPI document and the router. */
import type { TRPCMutationProcedure, TRPCQueryProcedure } from '@trpc/server';

/** An animal to add. Unknown members are ignored. */
export type NewPet = {
  /**
   * The animal's name: 1 to 200 Unicode code points, kept as sent. Not only white space, and without NUL or
   * half of a surrogate pair.
   */
  name: string;
  /**
   * Identifier of the category the animal belongs to. The service stores any identifier without checking it.
   * listCategories returns the names of categories. An integer from −(2^53 − 1) to 2^53 − 1.
   */
  categoryId: number;
  /** Availability of the animal; `"available"` if left out */
  status?: PetStatus | undefined;
};

/**
 * Changes to an animal: at least one of name, categoryId and status. Omitted members stay as they are.
 * Unknown members are ignored.
 */
export type PetChange = {
  /**
   * The animal's name: 1 to 200 Unicode code points, kept as sent. Not only white space, and without NUL or
   * half of a surrogate pair.
   */
  name?: string;
  /**
   * Identifier of the category the animal belongs to. The service stores any identifier without checking it.
   * listCategories returns the names of categories. An integer from −(2^53 − 1) to 2^53 − 1.
   */
  categoryId?: number;
  /** Availability of the animal */
  status?: PetStatus;
  /** The status that the animal had when it was read. If it is different by now, nothing is changed. */
  expectedStatus?: PetStatus;
};

/** An animal to order. Unknown members are ignored. */
export type NewOrder = {
  /** Identifier of the animal ordered. An integer from 1 to 2^53 − 1. */
  petId: number;
};

/** A change of the status of an order. Unknown members are ignored. */
export type OrderChange = {
  /** The new status */
  status: 'approved' | 'delivered' | 'cancelled';
};

/** A name for a category. Unknown members are ignored. */
export type CategoryName = {
  /**
   * The category's name: 1 to 200 Unicode code points, kept as sent. Not only white space, and without NUL or
   * half of a surrogate pair.
   */
  name: string;
};

/** Availability of an animal */
export type PetStatus = 'available' | 'pending' | 'sold';

/** The progress of an order */
export type OrderStatus = 'placed' | 'approved' | 'delivered' | 'cancelled';

/** An animal of the catalogue */
export type Pet = {
  /** Unique identifier, assigned by the service: positive and increasing. An integer from 1 to 2^53 − 1. */
  id: number;
  /** The animal's name: 1 to 200 Unicode code points */
  name: string;
  /**
   * Identifier of the category the animal belongs to. The service stores any identifier without checking it.
   * listCategories returns the names of categories. An integer from −(2^53 − 1) to 2^53 − 1.
   */
  categoryId: number;
  /** Availability of an animal */
  status: PetStatus;
};

/** An order of an animal */
export type Order = {
  /** Unique identifier: positive and increasing. An integer from 1 to 2^53 − 1. */
  id: number;
  /** Identifier of the animal ordered. An integer from 1 to 2^53 − 1. */
  petId: number;
  /** The progress of an order */
  status: OrderStatus;
  /** When the order was placed (RFC 3339, UTC) */
  createdAt: string;
};

/** A category that has a name */
export type Category = {
  /** Identifier of the category: the `categoryId` of its animals. An integer from 1 to 2^53 − 1. */
  id: number;
  /** The category's name: 1 to 200 Unicode code points */
  name: string;
};

/** The API key that asks */
export type Key = {
  /** What the operator of the service has named the key */
  name: string;
  /** The first characters of the key that was sent, to tell it from others */
  hint: string;
  /** The plan that decides on the limits */
  plan: Plan;
  /** What the key allows */
  scopes: Scope[];
  /** When the key was issued (RFC 3339, UTC) */
  createdAt: string;
  /** When the key stops working (RFC 3339, UTC); null if it does not expire */
  expiresAt: string | null;
  /**
   * Until when all other requests of the key are denied, because it kept sending while it was over its limit,
   * or the operator has banned it (RFC 3339, UTC); null if it is not banned
   */
  bannedUntil: string | null;
  /** The limits of the key, and what is left of each */
  limits: KeyLimit[];
  /** What the key has called in the last 30 days (UTC), newest first, up to half a minute ago */
  usage: OperationUsage[];
};

/** The plan that decides on the limits */
export type Plan = 'free' | 'pro' | 'business' | 'enterprise';

/** What an API key can allow: one of these, or one that a later version adds */
export type Scope = 'pets:read' | 'pets:write' | 'orders:read' | 'orders:write';

/** A limit of an API key, and what is left of it */
export type KeyLimit = {
  /** The window that the limit is for */
  window: 'minute' | 'day';
  /** Requests allowed in the window. An integer from 1 to 2^31 − 1. */
  limit: number;
  /** Requests left in the window. An integer from 0 to 2^31 − 1. */
  remaining: number;
  /** When the window ends, rounded up to a second (RFC 3339, UTC) */
  resetsAt: string;
  /** Whether all keys of the same customer count together, each by its own limits */
  shared: boolean;
};

/** How often an API key has called an operation on a day */
export type OperationUsage = {
  /** The day (UTC), as YYYY-MM-DD */
  day: string;
  /** The name of the operation, or mcp for requests denied before their operation was known */
  operation: string;
  /** How many requests of the key were admitted. An integer from 0 to 2^53 − 1. */
  requests: number;
  /** How many further requests a limit or a ban refused. An integer from 0 to 2^53 − 1. */
  denied: number;
  /** Whether the operation is deprecated */
  deprecated: boolean;
};

/** The body of every response with a status of 400 or more */
export type ErrorBody = {
  /** Machine-readable error code: one of these, or one that a later version adds */
  code: ErrorCode;
  /** Human-readable description */
  message: string;
  /** The HTTP status code. An integer from 400 to 599. */
  status: number;
};

/**
 * Names what went wrong:
 *
 * - `invalid_request` (400): the input is not JSON, or a field is missing or invalid, and `message` names
 *   each such field; or the request is not well-formed HTTP, and the response has no rate limit headers
 * - `missing_api_key` (401): no bearer token was sent
 * - `invalid_api_key` (401): the API key is malformed, unknown, revoked or expired
 * - `insufficient_scope` (403): the API key lacks the scope of the operation; `WWW-Authenticate` names it
 * - `origin_not_allowed` (403): the `Origin` is not among those whose scripts may call the service
 * - `not_found` (404): there is nothing at this address
 * - `method_not_allowed` (405): the path does not support this method; `Allow` lists those it does
 * - `idempotency_key_in_use` (409): a request with this Idempotency-Key is still running
 * - `operation_removed` (410): the operation's removal date has passed
 * - `payload_too_large` (413): the body is larger than 64 KiB
 * - `unsupported_media_type` (415): the body is not application/json, or has a Content-Encoding
 * - `idempotency_key_reused` (422): this Idempotency-Key was used with another body
 * - `rate_limit_exceeded` (429): the rate limit is used up; wait for `Retry-After`, and longer each time this
 *   happens again
 * - `api_key_banned` (429): the key kept sending while it was over its limit, or the operator has banned it;
 *   wait for `Retry-After`
 * - `internal_error` (500): an error inside the service; quote the `X-Request-Id` when you report it
 * - `not_implemented` (501): the service knows no transfer coding but chunked; or it does not know the
 *   method, and the response has no rate limit headers
 * - `service_unavailable` (503): the database cannot serve the request now, and `message` says whether a
 *   change may have been carried out; or the service is overloaded, and nothing was
 * - `pet_not_available` (409): the animal is pending or sold, or has an open order
 * - `pet_status_changed` (409): the status of the animal is not `expectedStatus`
 * - `pet_has_open_order` (409): the animal has an open order, so only the order can change its status
 * - `order_closed` (409): the order was delivered or cancelled
 */
export type ErrorCode =
  | 'invalid_request'
  | 'missing_api_key'
  | 'invalid_api_key'
  | 'insufficient_scope'
  | 'origin_not_allowed'
  | 'not_found'
  | 'method_not_allowed'
  | 'idempotency_key_in_use'
  | 'operation_removed'
  | 'payload_too_large'
  | 'unsupported_media_type'
  | 'idempotency_key_reused'
  | 'rate_limit_exceeded'
  | 'api_key_banned'
  | 'internal_error'
  | 'not_implemented'
  | 'service_unavailable'
  | 'pet_not_available'
  | 'pet_status_changed'
  | 'pet_has_open_order'
  | 'order_closed';

/** The input of listPets */
export type ListPetsInput = {
  /**
   * Maximum number of items to return. An integer from 1 to 100.
   *
   * @default 20
   */
  limit?: number | undefined;
  /** Filter by availability */
  status?: PetStatus | undefined;
  /** Filter by category. An integer from −(2^53 − 1) to 2^53 − 1. */
  categoryId?: number | undefined;
  /** Which come first: `oldest` (ascending ids, the default) or `newest` (descending) (experimental) */
  order?: 'oldest' | 'newest' | undefined;
  /** The id of the last item of the previous page. An integer from −(2^53 − 1) to 2^53 − 1. */
  cursor?: number | undefined;
};

/** The input of getPet */
export type GetPetInput = {
  /** Identifier of the animal. An integer from −(2^53 − 1) to 2^53 − 1. */
  petId: number;
};

/** The input of updatePet */
export type UpdatePetInput = {
  /** Identifier of the animal. An integer from −(2^53 − 1) to 2^53 − 1. */
  petId: number;
  /**
   * The animal's name: 1 to 200 Unicode code points, kept as sent. Not only white space, and without NUL or
   * half of a surrogate pair.
   */
  name?: string;
  /**
   * Identifier of the category the animal belongs to. The service stores any identifier without checking it.
   * listCategories returns the names of categories. An integer from −(2^53 − 1) to 2^53 − 1.
   */
  categoryId?: number;
  /** Availability of the animal */
  status?: PetStatus;
  /** The status that the animal had when it was read. If it is different by now, nothing is changed. */
  expectedStatus?: PetStatus;
};

/** The input of listOrders */
export type ListOrdersInput = {
  /**
   * Maximum number of items to return. An integer from 1 to 100.
   *
   * @default 20
   */
  limit?: number | undefined;
  /** Filter by progress */
  status?: OrderStatus | undefined;
  /** Filter by animal. An integer from 1 to 2^53 − 1. */
  petId?: number | undefined;
  /** Only orders placed before this moment (RFC 3339, UTC) */
  createdBefore?: string | undefined;
  /** Which come first: `oldest` (ascending ids, the default) or `newest` (descending) */
  order?: 'oldest' | 'newest' | undefined;
  /** The id of the last item of the previous page. An integer from −(2^53 − 1) to 2^53 − 1. */
  cursor?: number | undefined;
};

/** The input of getOrder */
export type GetOrderInput = {
  /** Identifier of the order. An integer from −(2^53 − 1) to 2^53 − 1. */
  orderId: number;
};

/** The input of updateOrder */
export type UpdateOrderInput = {
  /** Identifier of the order. An integer from −(2^53 − 1) to 2^53 − 1. */
  orderId: number;
  /** The new status */
  status: 'approved' | 'delivered' | 'cancelled';
};

/** The input of listCategories */
export type ListCategoriesInput = {
  /**
   * Maximum number of items to return. An integer from 1 to 100.
   *
   * @default 20
   */
  limit?: number | undefined;
  /** Which come first: `oldest` (ascending ids, the default) or `newest` (descending) */
  order?: 'oldest' | 'newest' | undefined;
  /** The id of the last item of the previous page. An integer from −(2^53 − 1) to 2^53 − 1. */
  cursor?: number | undefined;
};

/** The input of nameCategory */
export type NameCategoryInput = {
  /** Identifier of the category: the `categoryId` of its animals. An integer from 1 to 2^53 − 1. */
  categoryId: number;
  /**
   * The category's name: 1 to 200 Unicode code points, kept as sent. Not only white space, and without NUL or
   * half of a surrogate pair.
   */
  name: string;
};

/** The input of revokeKey */
export type RevokeKeyInput = {
  /** The hint of the key itself, as getKey shows it: any other hint changes nothing. 1 to 200 characters. */
  hint: string;
};

type Query<Input, Output> = TRPCQueryProcedure<{ input: Input; output: Output; meta: unknown }>;
type Mutation<Input, Output> = TRPCMutationProcedure<{ input: Input; output: Output; meta: unknown }>;

/** The operations of the service as tRPC's procedures */
export type Operations = {
  /**
   * List animals
   *
   * A page of animals: by ascending id, or with `order=newest` by descending id.
   *
   * While more follow, `nextCursor(page)` is the `cursor` of the next page; `pages` and `items` read on by
   * themselves. Plain tRPC has it in the header `X-Next-Cursor`.
   *
   * Needs the scope `pets:read`.
   *
   * @returns Animals by ascending id, or the newest first. At most 100 items.
   */
  listPets: Query<ListPetsInput | undefined, Pet[]>;
  /**
   * Add an animal
   *
   * Adds an animal to the catalogue.
   *
   * Needs the scope `pets:write`.
   *
   * `Idempotency-Key`: Makes the request safe to repeat: for 24 hours the same key with the same body returns
   * the first response again. Any 1 to 255 visible ASCII characters, such as a UUID. `createClient` sends one
   * with each call; to choose it, pass `{ context: { idempotencyKey } }` as the second argument.
   *
   * @returns The added animal
   */
  createPet: Mutation<NewPet, Pet>;
  /**
   * Get one animal
   *
   * Fetches one animal by its identifier. `GET /pets` with the `status` filter replaces this operation. To
   * find one animal there, send a `limit` of 1 and the identifier minus one as the `cursor`. The response has
   * that animal. If there is none, it has the next one by id, or is an empty array, so compare the id.
   *
   * Needs the scope `pets:read`.
   *
   * @returns The animal
   * @deprecated Since 2025-12-05T00:00:00Z; removed on 2030-12-05T00:00:00Z. Use `listPets` instead.
   */
  getPet: Query<GetPetInput, Pet>;
  /**
   * Change an animal
   *
   * Changes the members of an animal that are sent, and leaves the others as they are. Any status may follow
   * any other, but while the animal has an open order, only the order can change its status (updateOrder).
   * With `expectedStatus`, nothing changes if the animal has a different status by then. Programs that keep a
   * copy of the catalogue do not notice the change, because the animal keeps its id.
   *
   * Experimental: it may change within this version.
   *
   * Needs the scope `pets:write`.
   *
   * @returns The animal as it is now
   * @experimental
   */
  updatePet: Mutation<UpdatePetInput, Pet>;
  /**
   * List orders
   *
   * A page of orders: by ascending id, or with `order=newest` by descending id. `createdBefore` leaves out
   * orders placed at or after that moment. A page takes longer the more of those it passes over: the newest
   * first before its first order, the oldest first after its last.
   *
   * Experimental: parameters and fields may change within this version.
   *
   * While more follow, `nextCursor(page)` is the `cursor` of the next page; `pages` and `items` read on by
   * themselves. Plain tRPC has it in the header `X-Next-Cursor`.
   *
   * Needs the scope `orders:read`.
   *
   * @returns Orders by ascending id, or the newest first. At most 100 items.
   * @experimental
   */
  listOrders: Query<ListOrdersInput | undefined, Order[]>;
  /**
   * Order an animal
   *
   * Places an order for an available animal, and makes the animal pending. An animal has at most one open
   * order, however many callers order it at once. The order is open until it is delivered or cancelled.
   *
   * Experimental: it may change within this version.
   *
   * Needs the scope `orders:write`.
   *
   * `Idempotency-Key`: Makes the request safe to repeat: for 24 hours the same key with the same body returns
   * the first response again. Any 1 to 255 visible ASCII characters, such as a UUID. `createClient` sends one
   * with each call; to choose it, pass `{ context: { idempotencyKey } }` as the second argument.
   *
   * @returns The order placed
   * @experimental
   */
  createOrder: Mutation<NewOrder, Order>;
  /**
   * Get an order
   *
   * Fetches one order by its identifier.
   *
   * Experimental: fields may change within this version.
   *
   * Needs the scope `orders:read`.
   *
   * @returns The order
   * @experimental
   */
  getOrder: Query<GetOrderInput, Order>;
  /**
   * Approve, deliver or cancel an order
   *
   * A placed order may be approved, delivered or cancelled; an approved order may be delivered or cancelled.
   * The animal is sold once it is delivered, and available again once the order is cancelled. The order is
   * then closed, and its status can no longer change. Setting the same status again changes nothing.
   *
   * Experimental: it may change within this version.
   *
   * Needs the scope `orders:write`.
   *
   * @returns The order as it is now
   * @experimental
   */
  updateOrder: Mutation<UpdateOrderInput, Order>;
  /**
   * List categories
   *
   * A page of the categories that have a name: by ascending id, or with `order=newest` by descending id. An
   * animal may be of a category without a name.
   *
   * Whoever names a category chooses its id, so a reader that goes on from the last id misses those below it:
   * read all pages again.
   *
   * Experimental: it may change within this version.
   *
   * While more follow, `nextCursor(page)` is the `cursor` of the next page; `pages` and `items` read on by
   * themselves. Plain tRPC has it in the header `X-Next-Cursor`.
   *
   * Needs the scope `pets:read`.
   *
   * @returns Categories by ascending id, or the highest first. At most 100 items.
   * @experimental
   */
  listCategories: Query<ListCategoriesInput | undefined, Category[]>;
  /**
   * Name a category
   *
   * Gives a category a name, or a new name. Repeating the call changes nothing further.
   *
   * Experimental: it may change within this version.
   *
   * Needs the scope `pets:write`.
   *
   * @returns The category as it is now
   * @experimental
   */
  nameCategory: Mutation<NameCategoryInput, Category>;
  /**
   * Get your API key
   *
   * What the service knows of the key that the request is made with: its plan, its scopes, what is left of
   * its limits, and what it has called on which day. The key itself is never returned. The call costs the key
   * nothing, and works while the key is over its limit or banned: such calls have a limit of their own.
   *
   * Any key may call it.
   *
   * @returns The key
   * @beta
   */
  getKey: Query<void, Key>;
  /**
   * Revoke your API key
   *
   * Revokes the key that the request is made with, for good. The `hint` has to be its own, so that neither a
   * crawler nor a stray click revokes a key. The process that responds rejects the key at once, all others
   * within 2 seconds; repeating the call is a 401. During the overlap of a rotation, both the old and the new
   * key are revoked, whichever is sent. The call costs the key nothing, has no limit, and works while the key
   * is over its limit or banned.
   *
   * Any key may call it.
   *
   * @returns The key is revoked
   * @beta
   */
  revokeKey: Mutation<RevokeKeyInput, undefined>;
};
