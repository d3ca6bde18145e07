/** The least time that a stable operation stays after its deprecation was announced. */
export const MIN_NOTICE_MONTHS = 12;

/** What a stable operation promises from one release to the next. */
export const RULES = {
  'operation-kept': 'A stable operation keeps its name, its method and its path.',
  'stability-kept':
    'An operation does not become less stable, from stable to beta or from beta to experimental, and keeps the mark that says how stable it is.',
  'notice-given': `A stable operation is removed no earlier than ${MIN_NOTICE_MONTHS} months after the release that announced its deprecation.`,
  'removal-not-advanced': 'The date of a removal may be postponed, but is never brought forward.',
  'access-kept': 'A key that could call an operation still can: it needs no further scope.',
  'input-kept': 'Parameters, members and media types of a request are neither removed nor renamed.',
  'input-optional': 'A new parameter or member of a request is optional, and an optional one stays optional.',
  'input-accepted':
    'A valid request stays valid: its types, enums, bounds, patterns and formats are not narrowed.',
  'default-kept': 'What is left out of a request keeps its meaning.',
  'output-kept': 'Members, headers and media types of a response neither disappear nor become optional.',
  'output-expected':
    'The values of a response stay within the types, enums, bounds, patterns and formats that they had.',
  'responses-open':
    'Response schemas always allow extra members. Error codes and other open enums always allow unknown values.',
  'statuses-kept': 'An operation keeps its statuses, and gains none below 400.',
  'codes-kept': 'An operation keeps its error codes.',
} as const;

export type RuleId = keyof typeof RULES;

/** A change that breaks a rule, where it is, and what it is. */
export interface Violation {
  readonly rule: RuleId;
  /** Starts with a place in the operation, such as "request NewPet.name". */
  readonly text: string;
}
