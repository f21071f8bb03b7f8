// Dense linear algebra of one collocation panel, in a fixed order of operations.
//
// Computes: LU factors with partial pivoting and solutions of kNodes equations, products of a
//   matrix of pairs with a vector of pairs.
// Error: solutions carry the condition of the matrix; callers refine them with residuals in pairs.
// Determinism: every entry is built by the same additions in the same order whatever the loops do,
//   so vectorised code and the NumPy twin (psinoise/reference/riccati.py) give the same bits.
// Edge values: a singular or NaN matrix gives infinities or NaN, which callers look for.
#pragma once

#include <cstdint>

#include "base/level.hpp"
#include "kernels/tables.hpp"
#include "math/double_double.hpp"

namespace psinoise::PSINOISE_LEVEL {

// Factors of a square matrix, by columns: the inner loops run down a column. The alignment is
// stated because GCC 12 stores whole columns with aligned 256-bit moves as if it held.
struct Factors {
  alignas(64) double column[kNodes][kNodes];
  int pivot[kNodes];
};

inline void factorize(Factors& a) {
  for (int k = 0; k < kNodes; ++k) {
    double* column = a.column[k];
    int best = k;
    for (int i = k + 1; i < kNodes; ++i) {
      if (__builtin_fabs(column[i]) > __builtin_fabs(column[best])) best = i;
    }
    a.pivot[k] = best;
    if (best != k) {
      for (int j = 0; j < kNodes; ++j) {
        const double upper = a.column[j][k];
        a.column[j][k] = a.column[j][best];
        a.column[j][best] = upper;
      }
    }
    const double pivot = column[k];
    for (int i = k + 1; i < kNodes; ++i) column[i] = column[i] / pivot;
    for (int j = k + 1; j < kNodes; ++j) {
      const double factor = a.column[j][k];
      for (int i = k + 1; i < kNodes; ++i) a.column[j][i] -= column[i] * factor;
    }
  }
}

inline void solve(const Factors& a, double x[kNodes]) {
  for (int k = 0; k < kNodes; ++k) {
    const double upper = x[k];
    x[k] = x[a.pivot[k]];
    x[a.pivot[k]] = upper;
  }
  for (int k = 0; k < kNodes; ++k) {
    for (int i = k + 1; i < kNodes; ++i) x[i] -= a.column[k][i] * x[k];
  }
  for (int k = kNodes - 1; k >= 0; --k) {
    x[k] = x[k] / a.column[k][k];
    for (int i = 0; i < k; ++i) x[i] -= a.column[k][i] * x[k];
  }
}

struct PairVector {
  alignas(64) double hi[kNodes];
  alignas(64) double lo[kNodes];
};

// A matrix of pairs, given by columns: `columns[k * kNodes + j]` is entry (j, k).
struct PairMatrix {
  const double* hi;
  const double* lo;
};

inline void multiply(const PairMatrix& a, const PairVector& x, PairVector& out) {
  for (int j = 0; j < kNodes; ++j) out.hi[j] = out.lo[j] = 0.0;
  for (int k = 0; k < kNodes; ++k) {
    const double* hi = a.hi + k * kNodes;
    const double* lo = a.lo + k * kNodes;
    const DoubleDouble value = {x.hi[k], x.lo[k]};
    for (int j = 0; j < kNodes; ++j) {
      const DoubleDouble term = multiply(DoubleDouble{hi[j], lo[j]}, value);
      const DoubleDouble sum = add({out.hi[j], out.lo[j]}, term);
      out.hi[j] = sum.hi;
      out.lo[j] = sum.lo;
    }
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
