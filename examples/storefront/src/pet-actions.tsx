import { isApiError, type Pet, type PetStatus, type Scope } from '@animal-store/client';
import { useMutation } from '@tanstack/react-query';
import { useId, useRef } from 'react';
import { useAnnounce } from './announcer.js';
import { useAttempt } from './attempt.js';
import { useTRPCClient } from './connection.js';
import { moveFocusToCard } from './move-focus.js';
import { describeProblem } from './problem.js';
import { formatClock } from './time.js';
import { showOrders } from './views.js';
import { STATUS_LABELS } from './vocabulary.js';

type Action = 'order' | 'sold' | 'available';

/** What a clerk does next with an animal of each status. A status that the service adds fails the type check here. */
const ACTIONS = {
  available: ['order', 'sold'],
  pending: ['sold', 'available'],
  sold: ['available'],
} as const satisfies Record<PetStatus, readonly Action[]>;

const LABELS = { order: 'Order', sold: 'Mark as sold', available: 'Mark as available' } as const;

const SCOPES = {
  order: 'orders:write',
  sold: 'pets:write',
  available: 'pets:write',
} as const satisfies Record<Action, Scope>;

export interface PetActionsProps {
  readonly pet: Pet;
  /** Of the key: what it may not do has no button */
  readonly scopes: readonly Scope[];
  /** The id of the element with the name, which tells the buttons of all cards apart */
  readonly labelId: string;
  /** Called with the animal as it is now, which somebody else may have changed. */
  readonly onChange: (pet: Pet) => void;
}

interface Outcome {
  readonly pet: Pet;
  readonly text: string;
  /** Whether it is not what was asked for */
  readonly isOther?: boolean;
  /** Whether it has an open order, so that only the order can change its status */
  readonly isOrdered?: boolean;
}

/** The buttons of an animal's card, and what came of the last one. */
export function PetActions({ pet, scopes, labelId, onChange }: PetActionsProps) {
  const announce = useAnnounce();
  const { failure, setFailure, waitSeconds, ...attempt } = useAttempt();
  const run = useRun(pet);
  const id = useId();
  const { mutate, isPending, data } = useMutation({
    mutationFn: run,
    onMutate: () => setFailure(undefined),
    onSuccess: ({ pet: changed, text }) => {
      announce(`${pet.name}: ${text}`);
      onChange(changed);
    },
    onError: (error) => {
      const { title, text } = describeProblem(error);
      announce(`${pet.name}: not done. ${title}. ${text}`);
      setFailure({ error, atMs: Date.now() });
    },
  });
  // Any other button would be refused.
  const isOrdered = pet.status === 'pending' && data?.isOrdered;
  const actions = isOrdered ? [] : ACTIONS[pet.status].filter((action) => scopes.includes(SCOPES[action]));
  const hasOrder = pet.status === 'pending' && scopes.includes('orders:read');
  const isBlocked = isPending || attempt.isBlocked;
  return (
    <>
      {failure !== undefined && <Reason error={failure.error} waitSeconds={waitSeconds} />}
      {failure === undefined && data !== undefined && (
        <p className="card-note" data-state={data.isOther ? 'other' : 'done'}>
          {data.text}
        </p>
      )}
      {(actions.length > 0 || hasOrder) && (
        <div className="card-actions">
          {hasOrder && (
            <button
              id={`${id}-show`}
              type="button"
              className="button small"
              aria-labelledby={`${id}-show ${labelId}`}
              onClick={() => showOrders(pet.id)}
            >
              Show its order
            </button>
          )}
          {actions.map((action) => (
            <button
              key={action}
              id={`${id}-${action}`}
              ref={moveFocusToCard}
              type="button"
              className={action === 'order' ? 'button small' : 'button quiet small'}
              aria-labelledby={`${id}-${action} ${labelId}`}
              aria-disabled={isBlocked}
              onClick={() => isBlocked || mutate(action)}
            >
              {LABELS[action]}
            </button>
          ))}
        </div>
      )}
    </>
  );
}

/** Returns a function that does one of the actions. */
function useRun(pet: Pet) {
  const client = useTRPCClient();
  // An order that failed may have been placed, and only its response been lost: it is sent again under the same key.
  const orderKey = useRef<string>(undefined);
  const order = async (): Promise<Outcome> => {
    orderKey.current ??= crypto.randomUUID();
    const context = { idempotencyKey: orderKey.current };
    const { id } = await client.createOrder.mutate({ petId: pet.id }, { context });
    orderKey.current = undefined;
    return { pet: { ...pet, status: 'pending' }, text: `Its order is No.\u00a0${id}.`, isOrdered: true };
  };
  const readAgain = async (): Promise<Outcome> => {
    orderKey.current = undefined;
    const [found] = await client.listPets.query({ cursor: pet.id - 1, limit: 1 });
    if (found?.id !== pet.id) return { pet, text: 'It is not in the catalogue any more.', isOther: true };
    const now = STATUS_LABELS[found.status].toLowerCase();
    const text = `Somebody was faster: it is ${now} by now.`;
    // Nearly always it has been ordered, and marking it would be refused.
    return { pet: found, text, isOther: true, isOrdered: found.status === 'pending' };
  };
  // A card that was loaded before an order ended must not put a sold animal up for sale again.
  const mark = async (status: PetStatus): Promise<Outcome> => {
    const changed = await client.updatePet.mutate({ petId: pet.id, status, expectedStatus: pet.status });
    return { pet: changed, text: `It is ${STATUS_LABELS[changed.status].toLowerCase()} now.` };
  };
  return async (action: Action): Promise<Outcome> => {
    try {
      return await (action === 'order' ? order() : mark(action));
    } catch (error) {
      const code = isApiError(error) ? error.code : undefined;
      if (code === 'pet_not_available' || code === 'pet_status_changed') return readAgain();
      if (code !== 'pet_has_open_order') throw error;
      const { title, text } = describeProblem(error);
      const ordered = { ...pet, status: 'pending' } as const;
      return { pet: ordered, text: `${title}. ${text}`, isOther: true, isOrdered: true };
    }
  };
}

/** Why it was not done, and when it can be tried again. */
export function Reason({ error, waitSeconds }: { error: unknown; waitSeconds: number }) {
  const { title, text } = describeProblem(error);
  return (
    <p className="card-note" data-state="failed">
      <strong>{title}.</strong> {text}
      {waitSeconds > 0 && ` Again in ${formatClock(waitSeconds)}.`}
    </p>
  );
}
