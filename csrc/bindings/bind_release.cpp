#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/secret_key.hpp"
#include "bindings/tasks.hpp"
#include "bindings/unlocked.hpp"
#include "dispatch/dispatch.hpp"

namespace psinoise {
namespace {

constexpr std::size_t kMostListed = std::size_t{1} << 20;
constexpr int kMostDrawBits = 63;
// The ratio of blocks of 2^42 integers: 2^20 of them stay within 2^62.
constexpr std::uint64_t kLeastOfBlocks = std::uint64_t{1} << 22;
constexpr int kHeadBits = 31;

struct Shape {
  std::size_t columns;
  int draw_bits;
};

// How many columns the weights have, and of how many bits a draw is. Exact: a sum that overflows
// is refused.
Shape shape_of(const std::uint64_t* weights, std::size_t count) {
  if (count == 0 || count > kMostListed) {
    throw py::value_error("weights must be 1 to 2^20 in number");
  }
  std::size_t columns = 1;
  while (columns < count) columns *= 2;
  const std::uint64_t most = std::uint64_t{1} << kMostDrawBits;
  std::uint64_t total = 0;
  for (std::size_t k = 0; k < count; ++k) {
    if (weights[k] > most - total) throw py::value_error("weights must add up to at most 2^63");
    total += weights[k];
  }
  if (total < columns || (total & (total - 1)) != 0) {
    throw py::value_error("weights must add up to a power of two, at least one for each column");
  }
  int draw_bits = 0;
  while ((std::uint64_t{1} << draw_bits) < total) ++draw_bits;
  return {columns, draw_bits};
}

void fill_columns(const std::uint64_t* weights, std::size_t count, const Shape& shape,
                  std::uint64_t* entries) {
  const std::uint64_t capacity = (std::uint64_t{1} << shape.draw_bits) / shape.columns;
  kernels().lattice_columns(weights, count, shape.columns, capacity, entries);
}

py::array_t<std::uint64_t> lattice_columns(const py::array& weights) {
  const std::uint64_t* data = input<std::uint64_t>(weights, "weights", "uint64");
  const Shape shape = shape_of(data, size_of(weights));
  py::array_t<std::uint64_t> entries(static_cast<py::ssize_t>(shape.columns));
  fill_columns(data, size_of(weights), shape, entries.mutable_data());
  return entries;
}

// How far the sum of several digits may reach.
constexpr std::uint64_t kMostSum = std::uint64_t{1} << 60;

// A lattice law as an immutable object: copies that no array of the caller's can change.
class LatticeStore {
 public:
  LatticeStore(const py::array& weights, const std::string& tail, std::uint64_t repeated,
               std::uint64_t ratio) {
    const std::uint64_t* data = input<std::uint64_t>(weights, "weights", "uint64");
    const std::size_t count = size_of(weights);
    const Shape shape = shape_of(data, count);
    LatticeTail kind = LatticeTail::none;
    if (tail == "translate") {
      kind = LatticeTail::translate;
    } else if (tail == "dilate") {
      kind = LatticeTail::dilate;
    } else if (tail == "blocks") {
      kind = LatticeTail::blocks;
    } else if (tail != "none") {
      throw py::value_error("tail must be none, translate, dilate or blocks");
    }
    const bool none = kind == LatticeTail::none;
    if (none ? repeated != 0 : repeated == 0 || repeated > count) {
      throw py::value_error("repeated must be 1 to the number of weights where there is a tail");
    }
    if (kind == LatticeTail::dilate && (count != shape.columns || 2 * repeated != count)) {
      throw py::value_error("repeated must be half the weights, a power of two, in a dilated tail");
    }
    const bool power = ratio >= kLeastOfBlocks && (ratio & (ratio - 1)) == 0;
    if (kind == LatticeTail::blocks && !(repeated + 1 == count && power)) {
      throw py::value_error("repeated must be all weights but one, ratio 2^22 to 2^63, of blocks");
    }
    const auto entries = std::make_shared<std::vector<std::uint64_t>>(shape.columns);
    fill_columns(data, count, shape, entries->data());
    const std::uint64_t mask = shape.columns - 1;
    const std::uint64_t first = none ? shape.columns : count - repeated;
    // A first word has a sign and 31 bits of the draw.
    int column_bits = 0;
    while ((std::uint64_t{1} << column_bits) < shape.columns) ++column_bits;
    const int lower_bits = shape.draw_bits > kHeadBits ? shape.draw_bits - kHeadBits : 0;
    const auto heads = std::make_shared<std::vector<std::uint32_t>>(shape.columns);
    for (std::size_t k = 0; k < shape.columns; ++k) {
      const std::uint64_t entry = (*entries)[k];
      const std::uint64_t upper = entry >> column_bits >> lower_bits << column_bits;
      (*heads)[k] = static_cast<std::uint32_t>(upper | (entry & mask));
    }
    entries_.push_back(entries);
    heads_.push_back(heads);
    const std::uint64_t draw_mask = (std::uint64_t{1} << shape.draw_bits) - 1;
    digits_.push_back({{entries->data(), heads->data(), column_bits, lower_bits,
                        static_cast<std::uint32_t>(draw_mask & ((1u << kHeadBits) - 1)), mask,
                        draw_mask, first, kind, repeated, ratio, nullptr},
                       0});
    last_ = count - 1;
  }

  // The same law, whose last integer stands for one of another.
  LatticeStore with_rest(const LatticeStore& other) const {
    const bool single = digits_.size() == 1 && other.digits_.size() == 1;
    if (!single || digits_[0].table.tail != LatticeTail::none ||
        other.digits_[0].table.tail != LatticeTail::none) {
      throw py::value_error("rest must be a law without a tail or digits, for such a law");
    }
    if (other.last_ >= last_) throw py::value_error("rest must have fewer integers");
    LatticeStore made = *this;
    made.entries_.insert(made.entries_.end(), other.entries_.begin(), other.entries_.end());
    made.heads_.insert(made.heads_.end(), other.heads_.begin(), other.heads_.end());
    made.rests_.push_back(std::make_shared<const LatticeTable>(other.digits_[0].table));
    LatticeTable& table = made.digits_[0].table;
    table.tail = LatticeTail::rest;
    table.tail_first = last_;
    table.rest = made.rests_.back().get();
    return made;
  }

  // The sum with 2^shift times another law, the digits of which come after its own.
  LatticeStore plus(const LatticeStore& other, int shift) const {
    if (shift < 0 || shift > 60) throw py::value_error("shift must be 0 to 60");
    LatticeStore sum = *this;
    sum.entries_.insert(sum.entries_.end(), other.entries_.begin(), other.entries_.end());
    sum.heads_.insert(sum.heads_.end(), other.heads_.begin(), other.heads_.end());
    sum.rests_.insert(sum.rests_.end(), other.rests_.begin(), other.rests_.end());
    for (const LatticeDigit& digit : other.digits_) {
      sum.digits_.push_back({digit.table, digit.shift + shift});
    }
    std::uint64_t reach = 0;
    for (const LatticeDigit& digit : sum.digits_) {
      if (digit.table.tail != LatticeTail::none && digit.table.tail != LatticeTail::rest) {
        throw py::value_error("tail must be none where laws are added");
      }
      if (digit.shift > 60 || digit.table.column_mask > (kMostSum - reach) >> digit.shift) {
        throw py::value_error("shift must keep the sum within 2^60");
      }
      reach += digit.table.column_mask << digit.shift;
    }
    return sum;
  }

  LatticeSum view() const { return {digits_.data(), digits_.size()}; }

 private:
  std::vector<std::shared_ptr<const std::vector<std::uint64_t>>> entries_;
  std::vector<std::shared_ptr<const std::vector<std::uint32_t>>> heads_;
  std::vector<std::shared_ptr<const LatticeTable>> rests_;
  std::vector<LatticeDigit> digits_;
  std::uint64_t last_ = 0;  // of the listed integers of a law without digits
};

py::array_t<std::int64_t> lattice_choices(const LatticeStore& table, const py::array& words) {
  const std::uint64_t* data = input<std::uint64_t>(words, "words", "uint64");
  py::array_t<std::int64_t> out(words.size());
  const LatticeSum law = table.view();
  if (law.count != 1) throw py::value_error("table must have one digit");
  kernels().lattice_choices(law.digits[0].table, data, size_of(words), out.mutable_data());
  return out;
}

void lattice_noise(const LatticeStore& table, const SecretKey& key, std::uint64_t first,
                   py::array& out, std::size_t threads) {
  sample_in_tasks(
      [&](std::uint64_t begin, std::size_t size, std::int64_t* part) {
        kernels().lattice_noise(table.view(), key.data(), begin, size, part);
      },
      first, output<std::int64_t>(out, "out", "int64"), size_of(out), threads);
}

// Of a grid, as powers of two.
struct Range {
  int least;
  int most;
};

void require_in_range(double grid, Range range) {
  if (!(grid >= std::ldexp(1.0, range.least) && grid <= std::ldexp(1.0, range.most))) {
    throw py::value_error("grid must be in the range of x and out");
  }
}

template <typename In, typename Bound, typename Out>
void release_into(ReleaseKernel<In, Bound, Out> kernel, const LatticeStore& table,
                  const SecretKey& key, std::uint64_t first, const py::array& x, double grid,
                  Range range, const py::object& low, const py::object& high, Out* out,
                  std::size_t threads) {
  require_in_range(grid, range);
  const In* from = input<In>(x, "x", "float64, float32 or int64");
  const Bound least = low.cast<Bound>();
  const Bound most = high.cast<Bound>();
  if (!(least <= most)) throw py::value_error("low must be at most high");
  sample_in_tasks(
      [&](std::uint64_t begin, std::size_t size, Out* part) {
        kernel(table.view(), key.data(), begin, size, from + (part - out), grid, least, most, part);
      },
      first, out, size_of(x), threads);
}

bool all_finite(const py::array& x) {
  const std::size_t count = size_of(x);
  if (holds<double>(x)) {
    const double* values = input<double>(x, "x");
    const Unlocked unlocked;
    return kernels().all_finite_float64(values, count);
  }
  const float* values = input<float>(x, "x", "float64 or float32");
  const Unlocked unlocked;
  return kernels().all_finite_float32(values, count);
}

constexpr Range kFloat64{-1000, 900};
constexpr Range kFloat32{-100, 60};

void lattice_cells(const py::array& x, double grid, double low, double high, py::array& out) {
  require_same_size(x, out);
  if (!(low <= high)) throw py::value_error("low must be at most high");
  std::int64_t* cells = output<std::int64_t>(out, "out", "int64");
  const std::size_t count = size_of(x);
  if (holds<float>(x)) {
    require_in_range(grid, kFloat32);
    const float* values = input<float>(x, "x");
    const Unlocked unlocked;
    kernels().lattice_cells_float32(values, count, grid, low, high, cells);
  } else {
    require_in_range(grid, kFloat64);
    const double* values = input<double>(x, "x", "float64 or float32");
    const Unlocked unlocked;
    kernels().lattice_cells_float64(values, count, grid, low, high, cells);
  }
}

void lattice_release(const LatticeStore& table, const SecretKey& key, std::uint64_t first,
                     const py::array& x, double grid, const py::object& low, const py::object& high,
                     py::array& out, std::size_t threads) {
  require_same_size(x, out);
  if (holds<double>(x)) {
    release_into(kernels().release_float64, table, key, first, x, grid, kFloat64, low, high,
                 output<double>(out, "out", "float64"), threads);
  } else if (holds<float>(x)) {
    release_into(kernels().release_float32, table, key, first, x, grid, kFloat32, low, high,
                 output<float>(out, "out", "float32"), threads);
  } else if (holds<double>(out)) {
    release_into(kernels().release_int64_to_float64, table, key, first, x, grid, {-61, 62}, low,
                 high, output<double>(out, "out", "float64"), threads);
  } else {
    if (grid != std::floor(grid)) throw py::value_error("grid must be whole for integer results");
    release_into(kernels().release_int64, table, key, first, x, grid, {0, 62}, low, high,
                 output<std::int64_t>(out, "out", "int64 or float64"), threads);
  }
}

}  // namespace

void bind_release(py::module_& module) {
  py::class_<LatticeStore>(module, "LatticeTable")
      .def(py::init<const py::array&, const std::string&, std::uint64_t, std::uint64_t>(),
           py::arg("weights"), py::arg("tail"), py::arg("repeated"), py::arg("ratio"))
      .def("with_rest", &LatticeStore::with_rest, py::arg("rest"))
      .def("plus", &LatticeStore::plus, py::arg("other"), py::arg("shift"));
  module.def("lattice_columns", &lattice_columns, py::arg("weights"));
  module.def("lattice_choices", &lattice_choices, py::arg("table"), py::arg("words"));
  module.def("lattice_noise", &lattice_noise, py::arg("table"), py::arg("key"), py::arg("first"),
             py::arg("out"), py::arg("threads"));
  module.def("all_finite", &all_finite, py::arg("x"));
  module.def("lattice_cells", &lattice_cells, py::arg("x"), py::arg("grid"), py::arg("low"),
             py::arg("high"), py::arg("out"));
  module.def("lattice_release", &lattice_release, py::arg("table"), py::arg("key"),
             py::arg("first"), py::arg("x"), py::arg("grid"), py::arg("low"), py::arg("high"),
             py::arg("out"), py::arg("threads"));
}

}  // namespace psinoise
