/** What a store may use of this room. */
export { createProcedure, type OperationMeta, type RequestContext } from './builder.js';
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
export { createRouter, type Resource } from './resource.js';
