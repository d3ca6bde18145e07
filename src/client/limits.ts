/** A window of the rate limit as the last answer told of it. */
export interface WindowState {
  /** `minute` or `day` */
  readonly name: string;
  /** Requests that the window admits */
  readonly limit: number;
  /** Requests that it still admits */
  readonly remaining: number;
  readonly windowSeconds: number;
  /** When it ends, in Unix milliseconds of this machine's clock, so that a countdown does not need the service's */
  readonly resetAtMs: number;
}

/** Where the caller stood with the last answer: the window that is tighter for it, and all of them. */
export interface LimitState extends WindowState {
  readonly windows: readonly WindowState[];
}

/** The last seen limit state, in the form that React's `useSyncExternalStore` takes. */
export interface LimitWatch {
  /** Undefined before the first answer; a new object with each one */
  readonly current: LimitState | undefined;
  /** Calls the listener after each answer, until the function that it returns is called. */
  subscribe(listener: () => void): () => void;
}
