#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/law_store.hpp"
#include "bindings/unlocked.hpp"
#include "dispatch/dispatch.hpp"
#include "losses/losses.hpp"

namespace psinoise {
namespace {

template <typename Out, typename In>
py::array_t<Out> array_of(const std::vector<In>& values, std::vector<py::ssize_t> shape) {
  py::array_t<Out> out(std::move(shape));
  std::copy(values.begin(), values.end(), out.mutable_data());
  return out;
}

py::object loss_panels(const LawStore& law, double scale, double shift_p, double shift_q,
                       double rate, const py::array& points, const py::array& last,
                       const py::array& edges, double floor) {
  const PanelRule rule = {size_of(points), input<double>(points, "points"),
                          input<double>(last, "last")};
  if (rule.order < 2 || rule.order > 96) throw py::value_error("there must be 2 to 96 points");
  if (size_of(last) != 2 * rule.order) throw py::value_error("last must have shape (points, 2)");
  const double* x = input<double>(edges, "edges");
  const std::size_t count = size_of(edges);
  LossPanels found;
  bool inside = false;
  {
    const Unlocked unlocked;
    inside = make_panels(law.view(), {scale, shift_p, shift_q, rate}, rule, x, count, floor, found);
  }
  if (!inside) return py::none();
  const auto panels = static_cast<py::ssize_t>(found.left.size());
  const auto order = static_cast<py::ssize_t>(rule.order);
  return py::make_tuple(
      array_of<double>(found.left, {panels}), array_of<double>(found.right, {panels}),
      array_of<double>(found.base, {panels, order}), array_of<double>(found.loss, {panels, order}),
      array_of<bool>(found.flat, {panels}), array_of<bool>(found.narrow, {panels}));
}

py::tuple losses_at(const LawStore& law, double scale, double shift_p, double shift_q, double rate,
                    const py::array& x) {
  const double* points = input<double>(x, "x");
  const std::vector<py::ssize_t> shape(x.shape(), x.shape() + x.ndim());
  py::array_t<double> base(shape);
  py::array_t<double> ratio(shape);
  py::array_t<double> loss(shape);
  double* out[] = {base.mutable_data(), ratio.mutable_data(), loss.mutable_data()};
  {
    const Unlocked unlocked;
    kernels().point_losses(law.view(), {scale, shift_p, shift_q, rate}, points, size_of(x), out[0],
                           out[1], out[2]);
  }
  return py::make_tuple(base, ratio, loss);
}

py::tuple loss_bins(const LawStore& law, double scale, double shift_p, double shift_q, double rate,
                    const py::array& x, const py::array& loss, const py::array& slope,
                    const py::array& levels, double tilt, double log_norm, double tolerance) {
  require_same_size(x, loss);
  require_same_size(x, slope);
  if (x.ndim() != 2 || x.shape(1) < 2) throw py::value_error("panels must have two samples each");
  if (levels.size() < 2) throw py::value_error("there must be at least two levels");
  const PanelSamples panels = {input<double>(x, "x"), input<double>(loss, "loss"),
                               input<double>(slope, "slope"), static_cast<std::size_t>(x.shape(0)),
                               static_cast<std::size_t>(x.shape(1))};
  const double* l = input<double>(levels, "levels");
  const std::size_t count = size_of(levels);
  py::array_t<double> mass(levels.size() - 1);
  py::array_t<double> excess(levels.size() - 1);
  double* a = mass.mutable_data();
  double* u = excess.mutable_data();
  std::fill(a, a + count - 1, 0.0);
  std::fill(u, u + count - 1, 0.0);
  double error = 0.0;
  {
    const Unlocked unlocked;
    error = fill_bins(law.view(), {scale, shift_p, shift_q, rate}, panels, l, count,
                      {tilt, log_norm}, tolerance, a, u);
  }
  return py::make_tuple(mass, excess, error);
}

py::array_t<std::int64_t> edges_of_bins(const py::array& lowest, const py::array& highest,
                                        const py::array& log_mass, double step, double offset,
                                        double rounding, double tilt, double log_norm) {
  require_same_size(lowest, highest);
  require_same_size(lowest, log_mass);
  if (lowest.size() == 0) throw py::value_error("there must be at least one part");
  const LossParts parts = {input<double>(lowest, "lowest"), input<double>(highest, "highest"),
                           input<double>(log_mass, "log_mass"), size_of(lowest)};
  const std::vector<std::int64_t> edges =
      graded_edges(parts, {step, offset}, rounding, tilt, log_norm);
  return array_of<std::int64_t>(edges, {static_cast<py::ssize_t>(edges.size())});
}

py::array_t<std::int64_t> pieces_of_panels(const py::array& log_mass, const py::array& loss,
                                           std::size_t panels, std::size_t order, double c,
                                           double value, double frequency) {
  const PanelValues values = {input<double>(log_mass, "log_mass"), input<double>(loss, "loss"),
                              panels, order};
  if (order == 0 || std::min(size_of(log_mass), size_of(loss)) / order < panels) {
    throw py::value_error("there must be a node for each point of each panel");
  }
  py::array_t<std::int64_t> out(static_cast<py::ssize_t>(panels));
  panel_pieces(values, c, value, frequency, out.mutable_data());
  return out;
}

double log_mgf(const py::array& mass, const py::array& places, double slope) {
  require_same_size(mass, places);
  return kernels().log_mgf(input<double>(mass, "mass"), input<std::int64_t>(places, "places"),
                           size_of(mass), slope);
}

LossNodes nodes_of(const py::array& loss, const py::array& point, const py::array& mass) {
  require_same_size(loss, point);
  require_same_size(loss, mass);
  const double* losses = input<double>(loss, "loss");
  // Beyond all bins there is infinity.
  const auto twice_finite = [](double x) { return std::isfinite(2.0 * x); };
  if (!std::all_of(losses, losses + size_of(loss), twice_finite)) {
    throw py::value_error("sums of losses must be finite");
  }
  return {losses, input<double>(point, "point"), input<double>(mass, "mass"), size_of(loss)};
}

py::tuple binned(const py::array& loss_a, const py::array& point_a, const py::array& mass_a,
                 const py::array& loss_b, const py::array& point_b, const py::array& mass_b,
                 const py::array& edges, std::size_t threads) {
  const LossNodes a = nodes_of(loss_a, point_a, mass_a);
  const LossNodes b = nodes_of(loss_b, point_b, mass_b);
  if (edges.size() < 2) throw py::value_error("there must be at least two edges");
  const double* e = input<double>(edges, "edges");
  const std::size_t bins = size_of(edges) - 1;
  py::array_t<double> mass(edges.size() - 1);
  py::array_t<double> first(edges.size() - 1);
  py::array_t<double> second(edges.size() - 1);
  py::array_t<double> below(edges.size() - 1);
  const BinSums out = {mass.mutable_data(), first.mutable_data(), second.mutable_data(),
                       below.mutable_data()};
  {
    const Unlocked unlocked;
    binned_products(a, b, e, bins, thread_count(threads), out);
  }
  return py::make_tuple(mass, first, second, below);
}

py::array_t<double> sums_at(const py::array& values, const py::array& places,
                            const py::array& weights, std::size_t count) {
  require_same_size(places, weights);
  const std::int64_t* at = input<std::int64_t>(places, "places");
  const std::size_t terms = size_of(places);
  const auto most = static_cast<std::int64_t>(size_of(values)) - static_cast<std::int64_t>(count);
  if (!std::all_of(at, at + terms, [most](std::int64_t x) { return 0 <= x && x <= most; })) {
    throw py::value_error("there must be so many values from each place on");
  }
  const double* value = input<double>(values, "values");
  const double* weight = input<double>(weights, "weights");
  py::array_t<double> out(static_cast<py::ssize_t>(count));
  double* sums = out.mutable_data();
  {
    const Unlocked unlocked;
    kernels().placed_sums(value, at, weight, terms, count, sums);
  }
  return out;
}

py::array_t<double> peaks(const py::array& values, const py::array& other, const py::array& added,
                          const py::array& held, double sign) {
  const std::size_t points = size_of(other);
  if (points == 0 || size_of(values) % points != 0 || size_of(added) == 0) {
    throw py::value_error("rows must have as many values as the other function");
  }
  const std::size_t rows = size_of(values) / points;
  int bits = 0;
  while (size_of(added) << bits < size_of(values)) ++bits;
  if (size_of(added) << bits != size_of(values) || points >> bits << bits != points) {
    throw py::value_error("what is added must be of so many intervals, a power of two");
  }
  const std::int64_t* row = nullptr;
  if (held.size() != 0) {
    require_same_size(held, other);
    row = input<std::int64_t>(held, "held");
    const auto most = static_cast<std::int64_t>(rows);
    if (!std::all_of(row, row + points, [most](std::int64_t r) { return 0 <= r && r < most; })) {
      throw py::value_error("rows that are held must exist");
    }
  }
  const double* value = input<double>(values, "values");
  const double* of = input<double>(other, "other");
  const double* more = input<double>(added, "added");
  py::array_t<double> out(static_cast<py::ssize_t>(rows));
  double* found = out.mutable_data();
  {
    const Unlocked unlocked;
    kernels().peaks_above(value, of, more, bits, row, rows, points, sign, found);
  }
  return out;
}

py::array_t<std::int64_t> largest(const py::array& start, const py::array& end) {
  require_same_size(start, end);
  if (start.ndim() != 2 || size_of(start) == 0) throw py::value_error("there must be rows");
  const double* first = input<double>(start, "start");
  const double* last = input<double>(end, "end");
  py::array_t<std::int64_t> held(start.shape(1));
  std::int64_t* rows = held.mutable_data();
  {
    const Unlocked unlocked;
    kernels().largest_rows(first, last, static_cast<std::size_t>(start.shape(0)),
                           static_cast<std::size_t>(start.shape(1)), rows);
  }
  return held;
}

py::array_t<double> missing(const py::array& values, const py::array& other, double margin,
                            std::size_t reach) {
  require_same_size(values, other);
  const std::size_t points = size_of(values);
  if (points < 2 || reach > (points - 1) / 2)
    throw py::value_error("points must be more than that");
  const double* above = input<double>(values, "values");
  const double* below = input<double>(other, "other");
  py::array_t<double> out(values.size());
  double* found = out.mutable_data();
  {
    const Unlocked unlocked;
    std::vector<double> work(2 * (points + reach) + 2);
    kernels().missing_near(above, below, points, margin, reach, work.data(), found);
  }
  return out;
}

py::tuple sums_from_each(const py::array& loss, const py::array& mass) {
  require_same_size(loss, mass);
  py::array_t<double> total(loss.size());
  py::array_t<double> excess(loss.size());
  suffix_sums(input<double>(loss, "loss"), input<double>(mass, "mass"), size_of(loss),
              total.mutable_data(), excess.mutable_data());
  return py::make_tuple(total, excess);
}

py::array_t<double> sums_above(const py::array& loss, const py::array& total,
                               const py::array& excess, const py::array& offset,
                               const py::array& weight, const py::array& points) {
  require_same_size(loss, total);
  require_same_size(loss, excess);
  require_same_size(offset, weight);
  const LossSums sums = {input<double>(loss, "loss"), input<double>(total, "total"),
                         input<double>(excess, "excess"), size_of(loss)};
  const double* offsets = input<double>(offset, "offset");
  const std::size_t count = size_of(offset);
  if (count == 0 || !std::is_sorted(sums.loss, sums.loss + sums.count) ||
      !std::is_sorted(offsets, offsets + count)) {
    throw py::value_error("losses and offsets must rise, and there must be an offset");
  }
  const double* weights = input<double>(weight, "weight");
  const double* at = input<double>(points, "points");
  if (std::any_of(at, at + size_of(points), [](double x) { return std::isnan(x); })) {
    throw py::value_error("points must not be NaN");
  }
  py::array_t<double> out(points.size());
  double* found = out.mutable_data();
  {
    const Unlocked unlocked;
    excess_above(sums, offsets, weights, count, at, size_of(points), found);
  }
  return out;
}

}  // namespace

void bind_losses(py::module_& module) {
  module.def("binned_products", &binned, py::arg("loss_a"), py::arg("point_a"), py::arg("mass_a"),
             py::arg("loss_b"), py::arg("point_b"), py::arg("mass_b"), py::arg("edges"),
             py::arg("threads"));
  module.def("placed_sums", &sums_at, py::arg("values"), py::arg("places"), py::arg("weights"),
             py::arg("count"));
  module.def("peaks_above", &peaks, py::arg("values"), py::arg("other"), py::arg("added"),
             py::arg("held"), py::arg("sign"));
  module.def("largest_rows", &largest, py::arg("start"), py::arg("end"));
  module.def("missing_near", &missing, py::arg("values"), py::arg("other"), py::arg("margin"),
             py::arg("reach"));
  module.def("suffix_sums", &sums_from_each, py::arg("loss"), py::arg("mass"));
  module.def("excess_above", &sums_above, py::arg("loss"), py::arg("total"), py::arg("excess"),
             py::arg("offset"), py::arg("weight"), py::arg("points"));
  module.def("graded_edges", &edges_of_bins, py::arg("lowest"), py::arg("highest"),
             py::arg("log_mass"), py::arg("step"), py::arg("offset"), py::arg("rounding"),
             py::arg("tilt"), py::arg("log_norm"));
  module.def("log_mgf", &log_mgf, py::arg("mass"), py::arg("places"), py::arg("s"));
  module.def("loss_panels", &loss_panels, py::arg("law"), py::arg("scale"), py::arg("shift_p"),
             py::arg("shift_q"), py::arg("rate"), py::arg("points"), py::arg("last"),
             py::arg("edges"), py::arg("floor"));
  module.def("point_losses", &losses_at, py::arg("law"), py::arg("scale"), py::arg("shift_p"),
             py::arg("shift_q"), py::arg("rate"), py::arg("x"));
  module.def("panel_pieces", &pieces_of_panels, py::arg("log_mass"), py::arg("loss"),
             py::arg("panels"), py::arg("order"), py::arg("c"), py::arg("value"),
             py::arg("frequency"));
  module.def("loss_bins", &loss_bins, py::arg("law"), py::arg("scale"), py::arg("shift_p"),
             py::arg("shift_q"), py::arg("rate"), py::arg("x"), py::arg("loss"), py::arg("slope"),
             py::arg("levels"), py::arg("tilt"), py::arg("log_norm"), py::arg("tolerance"));
}

}  // namespace psinoise
