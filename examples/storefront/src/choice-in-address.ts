import { useEffect, useState } from 'react';

/**
 * A choice that is kept in the address (`?status=sold`), so that what is shown can be shared, survives a reload, and the
 * browser's back button returns to the choice before. Undefined stands for the default, which the address leaves out.
 *
 * @param choices the same array at each call; any other value in the address counts as none
 */
export function useChoiceInAddress<Choice extends string>(parameter: string, choices: readonly Choice[]) {
  const read = () => readChoice(parameter, choices);
  const [choice, setChoice] = useState(read);

  useEffect(() => {
    const readAgain = () => setChoice(readChoice(parameter, choices));
    addEventListener('popstate', readAgain);
    return () => removeEventListener('popstate', readAgain);
  }, [parameter, choices]);

  const change = (chosen: Choice | undefined) => {
    if (chosen === choice) return;
    history.pushState(null, '', addressOf(parameter, chosen));
    setChoice(chosen);
  };
  return [choice, change] as const;
}

function readChoice<Choice extends string>(
  parameter: string,
  choices: readonly Choice[],
): Choice | undefined {
  const value = new URLSearchParams(location.search).get(parameter);
  return choices.find((choice) => choice === value);
}

function addressOf(parameter: string, choice: string | undefined): URL {
  const url = new URL(location.href);
  url.hash = '';
  if (choice === undefined) url.searchParams.delete(parameter);
  else url.searchParams.set(parameter, choice);
  return url;
}
