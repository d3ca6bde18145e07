import { isApiError, type Order, type Pet, type PetStatus } from '@animal-store/client';
import { useMutation } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { useAnnounce } from './announcer.js';
import { useAttempt } from './attempt.js';
import { useTRPCClient } from './connection.js';
import { moveFocusToRow } from './move-focus.js';
import { Reason } from './pet-actions.js';
import { useReplaceItem } from './replace-item.js';
import { type NextStatus, ORDER_ACTIONS, ORDER_LABELS, type OrderStatus } from './vocabulary.js';

const LABELS = { approved: 'Approve', delivered: 'Deliver', cancelled: 'Cancel' } as const;

/** What the animal is once an order is closed, which cannot be taken back. */
const PET_STATUS: Partial<Record<OrderStatus, PetStatus>> = { delivered: 'sold', cancelled: 'available' };

export interface OrderActionsProps {
  readonly order: Order;
  /** The id of the element with its number, which tells the buttons of all rows apart */
  readonly labelId: string;
  /** Called with what has changed of the animal. */
  readonly onPetChange: (pet: Pick<Pet, 'id' | 'status'>) => void;
}

/** The buttons of an order's row, and what came of the last one. What closes the order asks once more. */
export function OrderActions({ order, labelId, onPetChange }: OrderActionsProps) {
  const [asked, setAsked] = useState<NextStatus>();
  const announce = useAnnounce();
  const { failure, setFailure, waitSeconds, ...attempt } = useAttempt();
  const replace = useReplaceItem('listOrders');
  const change = useChange(order);
  const { mutate, isPending, data } = useMutation({
    mutationFn: change,
    onMutate: () => setFailure(undefined),
    onSuccess: ({ order: changed, text }) => {
      announce(`Order ${order.id}: ${text}`);
      replace(changed);
      const status = PET_STATUS[changed.status];
      if (status !== undefined) onPetChange({ id: changed.petId, status });
    },
    onError: (error) => setFailure({ error, atMs: Date.now() }),
    onSettled: () => setAsked(undefined),
  });
  const isBlocked = isPending || attempt.isBlocked;
  const choose = (status: NextStatus) => {
    if (isBlocked) return;
    if (PET_STATUS[status] === undefined || asked === status) mutate(status);
    else setAsked(status);
  };
  const button = { labelId, isBlocked };
  return (
    <>
      {failure !== undefined && <Reason error={failure.error} waitSeconds={waitSeconds} />}
      {failure === undefined && asked === undefined && data !== undefined && (
        <p className="card-note" data-state={data.isOther ? 'other' : 'done'}>
          {data.text}
        </p>
      )}
      {asked === undefined ? (
        <div className="order-actions">
          {ORDER_ACTIONS[order.status].map((status) => (
            <ActionButton key={status} label={LABELS[status]} onClick={() => choose(status)} {...button} />
          ))}
        </div>
      ) : (
        <div className="order-actions">
          <ActionButton
            isFocused
            label={`Yes, ${LABELS[asked].toLowerCase()}`}
            onClick={() => choose(asked)}
            {...button}
          />
          <ActionButton label="Not now" onClick={() => setAsked(undefined)} {...button} />
          <p className="order-question">This cannot be taken back.</p>
        </div>
      )}
    </>
  );
}

interface ActionButtonProps {
  readonly label: string;
  readonly labelId: string;
  readonly isBlocked: boolean;
  /** Whether it has the focus when it appears, in place of the one that asked for it */
  readonly isFocused?: boolean;
  readonly onClick: () => void;
}

function ActionButton({ label, labelId, isBlocked, isFocused = false, onClick }: ActionButtonProps) {
  const id = useId();
  return (
    <button
      id={id}
      ref={(button) => {
        if (isFocused) button?.focus();
        return moveFocusToRow(button);
      }}
      type="button"
      className="button quiet small"
      aria-labelledby={`${id} ${labelId}`}
      aria-disabled={isBlocked}
      onClick={onClick}
    >
      {label}
    </button>
  );
}

/** Returns a function that moves the order on, or finds out how somebody else has closed it. */
function useChange({ id }: Order) {
  const client = useTRPCClient();
  return async (status: NextStatus) => {
    try {
      const order = await client.updateOrder.mutate({ orderId: id, status });
      return { order, text: describe(order), isOther: false };
    } catch (error) {
      if (!isApiError(error) || error.code !== 'order_closed') throw error;
      const order = await client.getOrder.query({ orderId: id });
      return {
        order,
        text: `Somebody was faster: it is ${ORDER_LABELS[order.status].toLowerCase()}.`,
        isOther: true,
      };
    }
  };
}

function describe({ status }: Order): string {
  const pet = PET_STATUS[status];
  return `${ORDER_LABELS[status]}${pet === undefined ? '' : `: its animal is ${pet} now`}.`;
}
