import type { ErrorCode } from '@animal-store/client';
import { useQueryClient } from '@tanstack/react-query';
import { useId } from 'react';
import './rehearsal.css';

/** A code that the service adds or removes fails the type check here. */
const CODES = {
  invalid_request: true,
  missing_api_key: true,
  invalid_api_key: true,
  insufficient_scope: true,
  origin_not_allowed: true,
  not_found: true,
  method_not_allowed: true,
  idempotency_key_in_use: true,
  operation_removed: true,
  payload_too_large: true,
  unsupported_media_type: true,
  idempotency_key_reused: true,
  rate_limit_exceeded: true,
  api_key_banned: true,
  internal_error: true,
  not_implemented: true,
  service_unavailable: true,
  pet_not_available: true,
  pet_status_changed: true,
  pet_has_open_order: true,
  order_closed: true,
} as const satisfies Record<ErrorCode, true>;

/** For development: every further request fails with the chosen code, so that each state of the page can be seen. */
export default function Rehearsal({ onChoose }: { onChoose: (code: ErrorCode | undefined) => void }) {
  const queryClient = useQueryClient();
  const id = useId();
  return (
    <aside className="rehearsal" aria-label="Rehearsal">
      <label htmlFor={id}>Requests fail with</label>
      <select
        id={id}
        onChange={({ target }) => onChoose((target.value || undefined) as ErrorCode | undefined)}
      >
        <option value="">no error</option>
        {Object.keys(CODES).map((code) => (
          <option key={code}>{code}</option>
        ))}
      </select>
      <button type="button" className="button quiet small" onClick={() => queryClient.resetQueries()}>
        Load again
      </button>
    </aside>
  );
}
