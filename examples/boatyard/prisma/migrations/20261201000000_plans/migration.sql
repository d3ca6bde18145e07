-- Not together with what uses them: the transaction that adds a value cannot.
ALTER TYPE "plan" ADD VALUE 'free';
ALTER TYPE "plan" ADD VALUE 'pro';
ALTER TYPE "plan" ADD VALUE 'business';
ALTER TYPE "plan" ADD VALUE 'enterprise';
