/* dist/all_reduce.c - sums over all ranks by one binary tree: recursive halving, then recursive doubling. */
#include "vktrain/dist.h"

#include "base/base.h"
