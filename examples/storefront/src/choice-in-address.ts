import { useEffect, useState } from 'react';

/**
 * A choice that is kept in the address (`?status=sold`), so that what is shown can be shared, survives a reload, and the
 * browser's back button returns to the choice before. Undefined stands for the default, which the address leaves out.
 *
 * @param choices the same array or pattern at each call; any other value in the address counts as none
 */
export function useChoiceInAddress<Choice extends string>(
  parameter: string,
  choices: readonly Choice[] | RegExp,
) {
  const [choice, setChoice] = useState(() => readChoice(parameter, choices));

  useEffect(() => {
    const readAgain = () => setChoice(readChoice(parameter, choices));
    addEventListener('popstate', readAgain);
    return () => removeEventListener('popstate', readAgain);
  }, [parameter, choices]);

  const change = (chosen: Choice | undefined) => {
    if (chosen !== choice) goTo({ [parameter]: chosen });
  };
  return [choice, change] as const;
}

/** Changes several choices at once, which the back button takes back at once. */
export function goTo(choices: Readonly<Record<string, string | undefined>>): void {
  const url = new URL(location.href);
  url.hash = '';
  for (const [parameter, choice] of Object.entries(choices))
    if (choice === undefined) url.searchParams.delete(parameter);
    else url.searchParams.set(parameter, choice);
  history.pushState(null, '', url);
  dispatchEvent(new PopStateEvent('popstate'));
}

function readChoice<Choice extends string>(
  parameter: string,
  choices: readonly Choice[] | RegExp,
): Choice | undefined {
  const value = new URLSearchParams(location.search).get(parameter) ?? '';
  if (choices instanceof RegExp) return choices.test(value) ? (value as Choice) : undefined;
  return choices.find((choice) => choice === value);
}
