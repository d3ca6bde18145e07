import type { PetStatus } from '@animal-store/client';
import { useEffect, useState } from 'react';
import { STATUSES } from './vocabulary.js';

const PARAMETER = 'status';

/**
 * The status that the catalogue is filtered by, kept in the address (`?status=sold`), so that a filtered catalogue can
 * be shared, survives a reload, and the browser's back button returns to the filter before. Undefined shows all.
 */
export function useStatusInAddress() {
  const [status, setStatus] = useState(readStatus);

  useEffect(() => {
    const readAgain = () => setStatus(readStatus());
    addEventListener('popstate', readAgain);
    return () => removeEventListener('popstate', readAgain);
  }, []);

  const change = (chosen: PetStatus | undefined) => {
    if (chosen === status) return;
    history.pushState(null, '', addressOf(chosen));
    setStatus(chosen);
  };
  return [status, change] as const;
}

/** A value that is no status counts as none. */
function readStatus(): PetStatus | undefined {
  const value = new URLSearchParams(location.search).get(PARAMETER);
  return STATUSES.find((status) => status === value);
}

function addressOf(status: PetStatus | undefined): URL {
  const url = new URL(location.href);
  url.hash = '';
  if (status === undefined) url.searchParams.delete(PARAMETER);
  else url.searchParams.set(PARAMETER, status);
  return url;
}
