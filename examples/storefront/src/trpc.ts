import { createTRPCContext } from '@trpc/tanstack-react-query';
import type { AppRouter } from 'animal-store/client';

export const { TRPCProvider, useTRPC } = createTRPCContext<AppRouter>();
