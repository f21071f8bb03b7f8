// The ground state of a Schrodinger operator on the half line, in logarithmic variables.
//
// Computes, from the last panel inward to 0, for a potential Q = theta c - E at the nodes:
//   r = -y'/y        r' = r^2 - Q           (half the score of p = y^2),
//   m = sf / p       m' = 2 r m - 1         (Mills ratio; also -dr/dE),
//   s                s' = 2 r s - c         (tail cost over p; also -dr/dtheta).
//   E is the ground energy when r(0) = 0; then C = s(0) / m(0) and p(0) = 1 / (2 m(0)).
// Method: collocation at kNodes points of each panel that include its left end and not its right
//   one, in the integrated form r_j = r_end - h sum_k B_jk (r_k^2 - Q_k). Including the end that is
//   being computed damps the error of the start like exp(-2 int r), also where panels are many
//   decay lengths wide. Newton in doubles, then refinement with residuals in pairs.
// Error: r, m and s solve the discrete equations to about 1e-30 after three refinements and 1e-14
//   after one (tests/test_ground_state.py); the discretization is the caller's.
// Edge values: where Newton does not converge, that panel and all before it are NaN. A pole of r,
//   which is an energy above the first odd state, shows in this way.
// References: docs/schrodinger.md; Hairer and Wanner, Solving ODEs II, IV.3 and IV.5 (stiff
//   accuracy of collocation with the end point).
#include "kernels/level_kernels.hpp"
#include "math/collocation.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

inline constexpr int kMostSteps = 40;
// A step this small leaves an error of its square.
inline constexpr double kLastStep = 1e-9;

struct Panel {
  double half;
  PairVector potential;
  double cost[kNodes];
};

// I + 2 h B diag(r)
void linearize(const PairMatrix& b, double half, const double* r, Factors& a) {
  for (int k = 0; k < kNodes; ++k) {
    const double factor = 2.0 * half * r[k];
    for (int j = 0; j < kNodes; ++j) a.column[k][j] = b.hi[k * kNodes + j] * factor;
    a.column[k][k] += 1.0;
  }
  factorize(a);
}

// Newton for r in doubles, from the guess in r. Leaves the factors of its last step.
bool newton(const PairMatrix& b, const Panel& panel, double end, double* r, Factors& a) {
  for (int step = 0; step < kMostSteps; ++step) {
    double rest[kNodes];
    for (int j = 0; j < kNodes; ++j) rest[j] = 0.0;
    for (int k = 0; k < kNodes; ++k) {
      const double slope = r[k] * r[k] - panel.potential.hi[k];
      for (int j = 0; j < kNodes; ++j) rest[j] += b.hi[k * kNodes + j] * slope;
    }
    for (int j = 0; j < kNodes; ++j) rest[j] = (r[j] - end) + panel.half * rest[j];
    linearize(b, panel.half, r, a);
    solve(a, rest);
    double largest = 0.0;
    double change = 0.0;
    for (int j = 0; j < kNodes; ++j) {
      r[j] -= rest[j];
      const double size = __builtin_fabs(r[j]);
      const double moved = __builtin_fabs(rest[j]);
      largest = size > largest ? size : largest;
      change = moved > change || moved != moved ? moved : change;
    }
    if (!(change < 1e300)) return false;
    if (change <= kLastStep * largest) return true;
  }
  return false;
}

// x -= A^-1 residual
void correct(const Factors& a, const PairVector& residual, PairVector& x) {
  double step[kNodes];
  for (int j = 0; j < kNodes; ++j) step[j] = residual.hi[j];
  solve(a, step);
  for (int j = 0; j < kNodes; ++j) {
    const DoubleDouble sum = add({x.hi[j], x.lo[j]}, {-step[j], 0.0});
    x.hi[j] = sum.hi;
    x.lo[j] = sum.lo;
  }
}

// (x - end) + h sum, in pairs
void residual_of(const PairVector& x, DoubleDouble end, double half, const PairVector& sum,
                 PairVector& out) {
  for (int j = 0; j < kNodes; ++j) {
    const DoubleDouble change = add({x.hi[j], x.lo[j]}, {-end.hi, -end.lo});
    const DoubleDouble scaled = multiply(DoubleDouble{sum.hi[j], sum.lo[j]}, {half, 0.0});
    const DoubleDouble total = add(change, scaled);
    out.hi[j] = total.hi;
    out.lo[j] = total.lo;
  }
}

void refine_decay(const PairMatrix& b, const Panel& panel, DoubleDouble end, const Factors& a,
                  PairVector& r) {
  PairVector slope;
  for (int k = 0; k < kNodes; ++k) {
    const DoubleDouble value = {r.hi[k], r.lo[k]};
    const DoubleDouble sum =
        add(multiply(value, value), {-panel.potential.hi[k], -panel.potential.lo[k]});
    slope.hi[k] = sum.hi;
    slope.lo[k] = sum.lo;
  }
  PairVector sum;
  multiply(b, slope, sum);
  PairVector residual;
  residual_of(r, end, panel.half, sum, residual);
  correct(a, residual, r);
}

// One refinement of x' = 2 r x - source.
void refine_linear(const PairMatrix& b, const Panel& panel, const PairVector& r,
                   const double* source, DoubleDouble end, const Factors& a, PairVector& x) {
  PairVector slope;
  for (int k = 0; k < kNodes; ++k) {
    const DoubleDouble product =
        multiply(DoubleDouble{2.0 * r.hi[k], 2.0 * r.lo[k]}, {x.hi[k], x.lo[k]});
    const DoubleDouble sum = add(product, {-source[k], 0.0});
    slope.hi[k] = sum.hi;
    slope.lo[k] = sum.lo;
  }
  PairVector sum;
  multiply(b, slope, sum);
  PairVector residual;
  residual_of(x, end, panel.half, sum, residual);
  correct(a, residual, x);
}

void store(const PairVector& x, double* hi, double* lo) {
  for (int j = 0; j < kNodes; ++j) {
    hi[j] = x.hi[j];
    lo[j] = x.lo[j];
  }
}

}  // namespace

void riccati(const RiccatiProblem& problem, const double* matrix_hi, const double* matrix_lo,
             int refinements, const RiccatiSolution& out) {
  const PairMatrix b = {matrix_hi, matrix_lo};
  double ones[kNodes];
  for (int j = 0; j < kNodes; ++j) ones[j] = 1.0;
  DoubleDouble end_r = {problem.start[0], 0.0};
  DoubleDouble end_m = {problem.start[1], 0.0};
  DoubleDouble end_s = {problem.start[2], 0.0};
  Factors a;
  bool sound = true;
  for (std::size_t p = problem.count; p-- > 0;) {
    const std::size_t at = p * kNodes;
    Panel panel;
    panel.half = problem.half[p];
    PairVector r;
    PairVector m = {};
    PairVector s = {};
    for (int j = 0; j < kNodes; ++j) {
      panel.potential.hi[j] = problem.potential_hi[at + j];
      panel.potential.lo[j] = problem.potential_lo[at + j];
      panel.cost[j] = problem.cost[at + j];
      const double guess = problem.guess[at + j];
      r.hi[j] = guess == guess ? guess : end_r.hi;
      r.lo[j] = 0.0;
    }
    sound = sound && newton(b, panel, end_r.hi, r.hi, a);
    if (!sound) {
      for (int j = 0; j < kNodes; ++j) {
        r.hi[j] = r.lo[j] = m.hi[j] = m.lo[j] = s.hi[j] = s.lo[j] = __builtin_nan("");
      }
    } else {
      for (int pass = 0; pass < refinements; ++pass) {
        refine_decay(b, panel, end_r, a, r);
      }
      // From x = 0, the first correction is the solution in doubles.
      for (int pass = 0; pass <= refinements; ++pass) {
        refine_linear(b, panel, r, ones, end_m, a, m);
        refine_linear(b, panel, r, panel.cost, end_s, a, s);
      }
    }
    store(r, out.decay_hi + at, out.decay_lo + at);
    store(m, out.mills_hi + at, out.mills_lo + at);
    store(s, out.tail_cost_hi + at, out.tail_cost_lo + at);
    end_r = {r.hi[0], r.lo[0]};
    end_m = {m.hi[0], m.lo[0]};
    end_s = {s.hi[0], s.lo[0]};
  }
}

}  // namespace psinoise::PSINOISE_LEVEL
