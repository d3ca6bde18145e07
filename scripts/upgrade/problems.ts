/** A wrong response. */
export interface Problem {
  readonly version: string;
  readonly operation: string;
  /** What was called */
  readonly call: string;
  /** The outcome, and what the log says about it */
  readonly cause: string;
}

/** One line if there is no problem, else for each cause the first call and how many others failed in the same way. */
export function describeProblems(name: string, problems: readonly Problem[]): string {
  if (problems.length === 0) return `Nodes of ${name} run on the database of this version.\n`;
  const calls = new Map<string, string[]>();
  for (const { version, operation, call, cause } of problems) {
    const title = `${version}: ${operation}: ${cause}`;
    calls.set(title, [...(calls.get(title) ?? []), call]);
  }
  const lines = [...calls].map(([title, [first, ...others]]) => {
    const more = others.length === 0 ? '' : `, and ${others.length} more`;
    return `${title}\n  ${first}${more}\n`;
  });
  return `Nodes of ${name} do not run on the database of this version.\n${lines.join('')}`;
}
