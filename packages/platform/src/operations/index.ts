/** What a store may use of this room. */
export type { OperationMeta, RequestContext } from './builder.js';
export {
  assignedId,
  date,
  decimal,
  fieldError,
  INPUT_ERROR,
  instant,
  int64,
  integer,
  text,
} from './input.js';
export { answerPage, nestedPageInput, pageInput, pageOrder, pageOutput } from './pagination.js';
export type { Resource } from './resource.js';
