// Transforms of pictures (tern/data) as classes with torchvision's arguments, a row for each. What puts
// others together, and what is done to pictures by Python's own functions, is in python/tern/transforms.
#include <array>
#include <iterator>

#include "bindings.h"
#include "option_casters.h"
#include "pictures.h"
#include "rows.h"

namespace tern::python {

namespace {

/// The words of an enumeration, as texts or as members of an enum of Python that has these names.
template <class Enum>
struct Words;
template <>
struct Words<data::Interpolation> {
  static constexpr const char* kWhat = "interpolation of a resize";
  static constexpr std::pair<const char*, data::Interpolation> kAll[] = {
      {"nearest", data::Interpolation::kNearest}, {"bilinear", data::Interpolation::kBilinear},
      {"bicubic", data::Interpolation::kBicubic}, {"box", data::Interpolation::kArea},
      {"hamming", data::Interpolation::kHamming}, {"lanczos", data::Interpolation::kLanczos}};
};
template <>
struct Words<data::Sampling> {
  static constexpr const char* kWhat = "interpolation";
  static constexpr std::pair<const char*, data::Sampling> kAll[] = {{"nearest", data::Sampling::kNearest},
                                                                    {"bilinear", data::Sampling::kBilinear}};
};
template <>
struct Words<data::PaddingMode> {
  static constexpr const char* kWhat = "padding_mode";
  static constexpr std::pair<const char*, data::PaddingMode> kAll[] = {
      {"constant", data::PaddingMode::kConstant},
      {"edge", data::PaddingMode::kEdge},
      {"reflect", data::PaddingMode::kReflect},
      {"symmetric", data::PaddingMode::kSymmetric}};
};
template <>
struct Words<data::AutoAugmentPolicy> {
  static constexpr const char* kWhat = "policy";
  static constexpr std::pair<const char*, data::AutoAugmentPolicy> kAll[] = {
      {"imagenet", data::AutoAugmentPolicy::kImageNet},
      {"cifar10", data::AutoAugmentPolicy::kCIFAR10},
      {"svhn", data::AutoAugmentPolicy::kSVHN}};
};

/// The words of PIL's numbers for interpolations.
constexpr const char* kInterpolationsOfPil[] = {"nearest", "lanczos", "bilinear",
                                                "bicubic", "box",     "hamming"};

/// What is filled in: a number, one for each channel, or None for 0.
struct Fill {
  std::vector<double> values{0};
  Fill() = default;
  explicit Fill(std::vector<double> values_) : values(std::move(values_)) {}
  operator std::vector<double>() const { return values.empty() ? std::vector<double>{0} : values; }
};

std::array<double, 2> ends(const data::AngleRange& range) { return {range.low, range.high}; }
std::array<double, 2> ends(const data::BlurSigma& range) { return {range.low, range.high}; }
std::array<double, 2> ends(const data::PerAxis& both) { return {both.x, both.y}; }
std::array<double, 2> ends(const data::JitterRange& range) { return range.bounds; }

}  // namespace

}  // namespace tern::python

namespace pybind11::detail {

template <class Enum>
struct words_caster {
  using Words = tern::python::Words<Enum>;
  PYBIND11_TYPE_CASTER(Enum, const_name("str"));
  bool load(handle source, bool) {
    object word =
        isinstance<str>(source) ? reinterpret_borrow<object>(source) : getattr(source, "name", none());
    if constexpr (std::is_same_v<Enum, tern::data::Interpolation> ||
                  std::is_same_v<Enum, tern::data::Sampling>)
      if (PyLong_CheckExact(source.ptr()))
        if (const auto number = source.cast<size_t>(); number < std::size(tern::python::kInterpolationsOfPil))
          word = str(tern::python::kInterpolationsOfPil[number]);
    if (!isinstance<str>(word)) return false;
    const auto text = word.attr("lower")().template cast<std::string>();
    std::string known;
    for (const auto& [each, member] : Words::kAll) {
      if (text == each) {
        value = member;
        return true;
      }
      known += (known.empty() ? "" : ", ") + std::string(each);
    }
    throw tern::NotImplementedError(std::string(Words::kWhat) + " '" + text + "': there are " + known);
  }
  static handle cast(Enum member, return_value_policy, handle) {
    for (const auto& [word, each] : Words::kAll)
      if (each == member) return str(word).release();
    return none().release();
  }
};
template <>
struct type_caster<tern::data::Interpolation> : words_caster<tern::data::Interpolation> {};
template <>
struct type_caster<tern::data::Sampling> : words_caster<tern::data::Sampling> {};
template <>
struct type_caster<tern::data::PaddingMode> : words_caster<tern::data::PaddingMode> {};
template <>
struct type_caster<tern::data::AutoAugmentPolicy> : words_caster<tern::data::AutoAugmentPolicy> {};

template <>
struct type_caster<tern::python::Fill> : values_caster<tern::python::Fill, double> {};

/// Made from one number or from two.
template <class Range>
struct range_caster {
  static constexpr auto name = const_name("Union[float, Tuple[float, float]]");
  template <class>
  using cast_op_type = Range;
  bool load(handle source, bool) {
    make_caster<tern::python::Numbers> numbers;
    if (source.is_none() || !numbers.load(source, true)) return false;
    const auto& given = cast_op<tern::python::Numbers&>(numbers).values;
    if (given.size() == 1) range_ = Range(given[0]);
    if (given.size() == 2) range_ = Range(given[0], given[1]);
    return range_.has_value();
  }
  operator Range() { return *range_; }
  static handle cast(const Range& range, return_value_policy, handle) {
    const auto [low, high] = tern::python::ends(range);
    if constexpr (requires { range.is_amount; })
      if (range.is_amount) return float_(high).release();
    return make_tuple(low, high).release();
  }

 private:
  std::optional<Range> range_;
};
template <>
struct type_caster<tern::data::AngleRange> : range_caster<tern::data::AngleRange> {};
template <>
struct type_caster<tern::data::BlurSigma> : range_caster<tern::data::BlurSigma> {};
template <>
struct type_caster<tern::data::PerAxis> : range_caster<tern::data::PerAxis> {};
template <>
struct type_caster<tern::data::JitterRange> : range_caster<tern::data::JitterRange> {};

}  // namespace pybind11::detail

namespace tern::python {

Tensor picture_from(const py::object& picture) {
  if (py::isinstance<TensorImpl>(picture)) return picture.cast<Tensor>();
  return imported("tern.transforms.pictures", "as_tensor")(picture).cast<Tensor>();
}

std::vector<data::Transform> transforms_of(const std::vector<PictureTransform*>& steps) {
  std::vector<data::Transform> transforms;
  for (const PictureTransform* step : steps) transforms.push_back(step->transform);
  return transforms;
}

data::Transform composed(const std::vector<PictureTransform*>& steps) {
  if (steps.empty()) return {};
  return steps.size() == 1 ? steps[0]->transform : data::Transform(data::Compose(transforms_of(steps)));
}

namespace {

/// A class of Python for each transform of C++.
template <class T>
struct TransformOf : PictureTransform {};

template <class T>
py::object as_object(const T& value) {
  if constexpr (std::is_base_of_v<py::object, T>)
    return value;
  else
    return py::cast(value);
}

template <class Arguments, class Values, size_t... I>
std::vector<std::pair<std::string, py::object>> named(const Arguments& rows, const Values& values,
                                                      std::index_sequence<I...>) {
  return {{std::get<I>(rows).name, as_object(std::get<I>(values))}...};
}

/// The transform that `make(arguments..., options)` gives, as a class.
template <class T, class Make, class... Arguments, class... Options>
void transform_by(py::module_& m, const char* name, Make make, const std::tuple<Arguments...>& arguments,
                  const std::tuple<Options...>& options = {}) {
  const auto body = detail::with_options(make, arguments, options);
  const auto all = std::tuple_cat(arguments, options);
  py::class_<TransformOf<T>, PictureTransform, std::shared_ptr<TransformOf<T>>> c(m, name,
                                                                                  py::dynamic_attr());
  detail::declare(arguments, options, [&](auto... declared) {
    c.def(py::init([body, all](typename Arguments::Type... given, typename Options::Type... values) {
            auto made = std::make_shared<TransformOf<T>>();
            made->arguments = named(all, std::forward_as_tuple(given..., values...),
                                    std::make_index_sequence<sizeof...(Arguments) + sizeof...(Options)>());
            made->transform = body(std::move(given)..., std::move(values)...);
            return made;
          }),
          declared...);
  });
}

/// The one that is made as `T(arguments..., options)`.
template <class T, class Arguments = std::tuple<>, class Options = std::tuple<>>
void transform(py::module_& m, const char* name, const Arguments& arguments = {},
               const Options& options = {}) {
  transform_by<T>(
      m, name, [](auto&&... values) { return data::Transform(T(std::forward<decltype(values)>(values)...)); },
      arguments, options);
}

/// Height and width, of one number for both or of two.
std::array<int64_t, 2> sides(const Ints& size, const char* transform) {
  if (size.values.size() != 1 && size.values.size() != 2)
    throw ValueError(std::string(transform) + ": size is a number, or height and width, got " +
                     std::to_string(size.values.size()) + " numbers");
  return {size.values.front(), size.values.back()};
}

/// Makes a transform of height, width and whatever else there is.
template <class T>
auto of_sides(const char* name) {
  return [name](const Ints& size, auto&&... more) {
    const auto [height, width] = sides(size, name);
    return data::Transform(T(height, width, std::forward<decltype(more)>(more)...));
  };
}

data::Padding padding_of(const Ints& padding, const char* transform) {
  const auto& given = padding.values;
  if (given.size() == 1) return given[0];
  if (given.size() == 2) return {given[0], given[1]};
  if (given.size() == 4) return {given[0], given[1], given[2], given[3]};
  throw ValueError(std::string(transform) +
                   ": padding is 1, 2 (left and right, top and bottom) or 4 numbers, got " +
                   std::to_string(given.size()));
}

data::Transform resize_of(const Ints& size, data::Interpolation interpolation,
                          std::optional<int64_t> max_size, const py::object& antialias) {
  if (max_size) throw NotImplementedError("Resize: max_size is not supported; leave it out");
  if (py::isinstance<py::bool_>(antialias) && !antialias.cast<bool>())
    throw NotImplementedError("Resize: only antialias=True is supported");
  if (size.values.size() == 1) return data::Resize(size.values[0], interpolation);
  const auto [height, width] = sides(size, "Resize");
  return data::Resize(height, width, interpolation);
}

data::Transform random_crop_of(const Ints& size, const std::optional<Ints>& padding, bool pad_if_needed,
                               const Fill& fill, data::PaddingMode mode) {
  const auto [height, width] = sides(size, "RandomCrop");
  const data::PadOptions pad{.fill = fill, .padding_mode = mode};
  std::vector<data::Transform> steps;
  if (padding) steps.push_back(data::Pad(padding_of(*padding, "RandomCrop"), pad));
  if (pad_if_needed)
    steps.push_back([height = height, width = width, pad](const Tensor& picture) {
      if (picture.dim() != 3) return picture;  // the crop says so
      const auto lacking = [&](int64_t side, int dim) {
        return std::max<int64_t>(0, side - picture.size(dim));
      };
      return data::Pad({lacking(width, 2), lacking(height, 1)}, pad)(picture);
    });
  steps.push_back(data::RandomCrop(height, width, /*padding=*/0));
  return data::Compose(std::move(steps));
}

data::Transform affine_of(data::AngleRange degrees, std::optional<std::array<double, 2>> translate,
                          std::optional<std::array<double, 2>> scale, const Numbers& shear,
                          data::RandomAffineOptions options) {
  if (translate) options.translate = *translate;
  if (scale) options.scale = *scale;
  const auto& s = shear.values;
  if (s.size() == 1) options.shear = s[0];
  if (s.size() == 2 || s.size() == 4) options.shear = {s[0], s[1]};
  if (s.size() == 4) options.shear_y = {s[2], s[3]};
  if (s.size() == 3 || s.size() > 4)
    throw ValueError("RandomAffine: shear is 1, 2 or 4 numbers, got " + std::to_string(s.size()));
  return data::RandomAffine(degrees, std::move(options));
}

data::Transform erasing_of(double p, std::array<double, 2> scale, std::array<double, 2> ratio,
                           const std::variant<std::string, Numbers>& value, bool /*inplace*/) {
  data::RandomErasingOptions options{.p = p, .scale = scale, .ratio = ratio};
  if (const auto* word = std::get_if<std::string>(&value)) {
    if (*word != "random")
      throw ValueError("RandomErasing: value is a number, one for each channel, or 'random', got '" + *word +
                       "'");
    options.random_value = true;
  } else {
    options.value = std::get<Numbers>(value).values;
  }
  return data::RandomErasing(std::move(options));
}

data::Transform blur_of(const Ints& kernel_size, data::BlurSigma sigma) {
  const auto [width, height] = sides(kernel_size, "GaussianBlur");  // this order
  return data::GaussianBlur(width, height, sigma);
}

void bind_geometry(py::module_& m) {
  const auto size = argument<Ints>("size");
  transform_by<data::Resize>(
      m, "Resize", resize_of,
      rows(size, argument<data::Interpolation>("interpolation", data::Interpolation::kBilinear),
           argument<std::optional<int64_t>>("max_size", {}),
           argument<py::object>("antialias", py::bool_(true))));
  transform_by<data::CenterCrop>(m, "CenterCrop", of_sides<data::CenterCrop>("CenterCrop"), rows(size));
  transform_by<data::FiveCrop>(m, "FiveCrop", of_sides<data::FiveCrop>("FiveCrop"), rows(size));
  transform_by<data::TenCrop>(m, "TenCrop", of_sides<data::TenCrop>("TenCrop"), rows(size),
                              rows(option("vertical_flip", &data::TenCropOptions::vertical_flip)));
  transform_by<data::Pad>(
      m, "Pad",
      [](const Ints& padding, data::PadOptions options) {
        return data::Transform(data::Pad(padding_of(padding, "Pad"), std::move(options)));
      },
      rows(argument<Ints>("padding")),
      rows(option_as<Fill>("fill", &data::PadOptions::fill),
           option("padding_mode", &data::PadOptions::padding_mode)));
  transform_by<data::RandomCrop>(
      m, "RandomCrop", random_crop_of,
      rows(size, argument<std::optional<Ints>>("padding", {}), argument<bool>("pad_if_needed", false),
           argument<Fill>("fill", {}),
           argument<data::PaddingMode>("padding_mode", data::PaddingMode::kConstant)));
  using Crop = data::RandomResizedCropOptions;
  transform_by<data::RandomResizedCrop>(
      m, "RandomResizedCrop", of_sides<data::RandomResizedCrop>("RandomResizedCrop"), rows(size),
      rows(option("scale", &Crop::scale), option("ratio", &Crop::ratio),
           option("interpolation", &Crop::interpolation), ignores("antialias", std::optional<bool>(true))));
  const auto p = argument("p", 0.5);
  transform<data::RandomHorizontalFlip>(m, "RandomHorizontalFlip", rows(p));
  transform<data::RandomVerticalFlip>(m, "RandomVerticalFlip", rows(p));

  using Rotation = data::RandomRotationOptions;
  transform<data::RandomRotation>(
      m, "RandomRotation", rows(argument<data::AngleRange>("degrees")),
      rows(option("interpolation", &Rotation::interpolation), option("expand", &Rotation::expand),
           option("center", &Rotation::center), option_as<Fill>("fill", &Rotation::fill)));
  using Affine = data::RandomAffineOptions;
  transform_by<data::RandomAffine>(
      m, "RandomAffine", affine_of,
      rows(argument<data::AngleRange>("degrees"),
           argument<std::optional<std::array<double, 2>>>("translate", {}),
           argument<std::optional<std::array<double, 2>>>("scale", {}), argument<Numbers>("shear", {})),
      rows(option("interpolation", &Affine::interpolation), option_as<Fill>("fill", &Affine::fill),
           option("center", &Affine::center)));
  using Perspective = data::RandomPerspectiveOptions;
  transform<data::RandomPerspective>(
      m, "RandomPerspective", rows(),
      rows(option("distortion_scale", &Perspective::distortion_scale), option("p", &Perspective::p),
           option("interpolation", &Perspective::interpolation),
           option_as<Fill>("fill", &Perspective::fill)));
  using Elastic = data::ElasticTransformOptions;
  transform<data::ElasticTransform>(
      m, "ElasticTransform", rows(),
      rows(option("alpha", &Elastic::alpha), option("sigma", &Elastic::sigma),
           option("interpolation", &Elastic::interpolation), option_as<Fill>("fill", &Elastic::fill)));
}

void bind_colours(py::module_& m) {
  const auto p = argument("p", 0.5);
  transform<data::ToFloat>(m, "ToTensor");
  transform_by<data::Normalize>(
      m, "Normalize",
      [](const Numbers& mean, const Numbers& std, bool) {
        return data::Transform(data::Normalize(mean.values, std.values));
      },
      rows(argument<Numbers>("mean"), argument<Numbers>("std"), argument("inplace", false)));
  transform<data::Grayscale>(m, "Grayscale", rows(argument<int64_t>("num_output_channels", 1)));
  transform<data::RandomGrayscale>(m, "RandomGrayscale", rows(argument("p", 0.1)));
  using Jitter = data::ColorJitterOptions;
  transform<data::ColorJitter>(
      m, "ColorJitter", rows(),
      rows(option("brightness", &Jitter::brightness), option("contrast", &Jitter::contrast),
           option("saturation", &Jitter::saturation), option("hue", &Jitter::hue)));
  transform_by<data::GaussianBlur>(
      m, "GaussianBlur", blur_of,
      rows(argument<Ints>("kernel_size"), argument<data::BlurSigma>("sigma", {0.1, 2.0})));
  transform<data::RandomInvert>(m, "RandomInvert", rows(p));
  transform<data::RandomPosterize>(m, "RandomPosterize", rows(argument<int64_t>("bits"), p));
  transform<data::RandomSolarize>(m, "RandomSolarize", rows(argument<double>("threshold"), p));
  transform<data::RandomAutocontrast>(m, "RandomAutocontrast", rows(p));
  transform<data::RandomEqualize>(m, "RandomEqualize", rows(p));
  transform<data::RandomAdjustSharpness>(m, "RandomAdjustSharpness",
                                         rows(argument<double>("sharpness_factor"), p));
  const data::RandomErasingOptions erasing;
  transform_by<data::RandomErasing>(
      m, "RandomErasing", erasing_of,
      rows(argument("p", erasing.p), argument("scale", erasing.scale), argument("ratio", erasing.ratio),
           argument<std::variant<std::string, Numbers>>("value", Numbers({0})), argument("inplace", false)));
}

void bind_policies(py::module_& m) {
  const auto policy = argument<data::AutoAugmentPolicy>("policy", data::AutoAugmentPolicy::kImageNet);
  const auto both = []<class Options>(std::type_identity<Options>) {
    return rows(option("interpolation", &Options::interpolation), option_as<Numbers>("fill", &Options::fill));
  };
  transform<data::AutoAugment>(m, "AutoAugment", rows(policy),
                               both(std::type_identity<data::AutoAugmentOptions>()));
  using Rand = data::RandAugmentOptions;
  transform<data::RandAugment>(
      m, "RandAugment", rows(),
      std::tuple_cat(rows(option("num_ops", &Rand::num_ops), option("magnitude", &Rand::magnitude),
                          option("num_magnitude_bins", &Rand::num_magnitude_bins)),
                     both(std::type_identity<Rand>())));
  using Trivial = data::TrivialAugmentWideOptions;
  transform<data::TrivialAugmentWide>(
      m, "TrivialAugmentWide", rows(),
      std::tuple_cat(rows(option("num_magnitude_bins", &Trivial::num_magnitude_bins)),
                     both(std::type_identity<Trivial>())));
  using Mix = data::AugMixOptions;
  transform<data::AugMix>(
      m, "AugMix", rows(),
      std::tuple_cat(rows(option("severity", &Mix::severity), option("mixture_width", &Mix::mixture_width),
                          option("chain_depth", &Mix::chain_depth), option("alpha", &Mix::alpha),
                          option("all_ops", &Mix::all_ops)),
                     both(std::type_identity<Mix>())));
}

/// MixUp and CutMix: of a batch, as a pair or as two arguments.
template <class Mix>
void bind_mix(py::module_& m, const char* name) {
  py::class_<Mix, std::shared_ptr<Mix>>(m, name, py::dynamic_attr())
      .def(py::init([](double alpha, std::optional<int64_t> num_classes) {
             return std::make_shared<Mix>(data::MixOptions{.alpha = alpha, .num_classes = num_classes});
           }),
           py::kw_only(), py::arg("alpha") = 1.0, py::arg("num_classes") = py::none())
      .def("__call__", [name](const Mix& self, py::args batch) {
        const py::tuple parts = batch.size() == 1 && !py::isinstance<TensorImpl>(batch[0])
                                    ? py::tuple(batch[0])
                                    : py::tuple(batch);
        if (parts.size() != 2)
          throw TypeError(std::string(name) + ": expects pictures and labels, got " +
                          std::to_string(parts.size()) + " objects");
        const auto images = parts[0].cast<Tensor>(), labels = parts[1].cast<Tensor>();
        const py::gil_scoped_release no_gil;
        const data::Batch mixed = self(data::Batch(images, labels));
        return std::pair(mixed.data, mixed.target);
      });
}

/// What a transform makes of a picture, or of each of a batch [..., channels, height, width], for all of
/// which it draws the same numbers; several crops of each come first then, as they do of one picture.
Tensor transformed(const data::Transform& transform, const Tensor& pictures) {
  constexpr int64_t kPictureDims = 3;
  const data::Random drawn(data::draw_seed({}), /*stream=*/0, /*index=*/0);
  const auto one = [&](const Tensor& picture) {
    data::Random random = drawn;
    return transform(picture, random);
  };
  if (pictures.dim() <= kPictureDims) return one(pictures);
  const Shape batch(pictures.shape().begin(), pictures.shape().end() - kPictureDims);
  std::vector<Tensor> results;
  for (const Tensor& picture : unbind(flatten(pictures, 0, -kPictureDims - 1)))
    results.push_back(one(picture));
  if (results.empty()) throw ShapeError("a transform of pictures needs at least one, got a batch of none");
  const int64_t dim = results[0].dim() > kPictureDims ? 1 : 0;
  return unflatten(stack(results, dim), dim, batch);
}

/// With the arguments as Python's own code has them: RandomResizedCrop(size=224, scale=[0.08, 1.0]).
std::string printed(const py::object& self) {
  std::string text;
  for (const auto& [name, value] : self.cast<const PictureTransform&>().arguments)
    text += (text.empty() ? "" : ", ") + name + "=" + std::string(py::repr(value));
  return std::string(py::str(py::type::of(self).attr("__name__"))) + "(" + text + ")";
}

}  // namespace

void bind_transforms(py::module_& m) {
  const auto call = [](const PictureTransform& self, const py::object& picture) {
    const Tensor tensor = picture_from(picture);
    const py::gil_scoped_release no_gil;
    return transformed(self.transform, tensor);
  };
  py::class_<PictureTransform, std::shared_ptr<PictureTransform>>(m, "_Transform", py::dynamic_attr())
      .def("__call__", call, py::arg("picture"))
      .def("forward", call, py::arg("picture"))
      .def("__getattr__",
           [](const PictureTransform& self, const std::string& name) {
             for (const auto& [each, value] : self.arguments)
               if (each == name) return value;
             PyErr_SetString(PyExc_AttributeError, ("no attribute '" + name + "'").c_str());
             throw py::error_already_set();
           })
      .def("__repr__", printed)
      .def("__reduce__", [](const py::object& self) {
        py::list values;
        for (const auto& [name, value] : self.cast<const PictureTransform&>().arguments) values.append(value);
        return py::make_tuple(py::type::of(self), py::tuple(values));
      });
  bind_geometry(m);
  bind_colours(m);
  bind_policies(m);
  bind_mix<data::MixUp>(m, "MixUp");
  bind_mix<data::CutMix>(m, "CutMix");

  // Of transforms of C++ only; python/tern/transforms has those that take functions of Python too.
  const auto as_python = [](data::Transform transform) {
    return std::make_shared<PictureTransform>(PictureTransform{std::move(transform)});
  };
  using Steps = std::vector<PictureTransform*>;
  m.def("_compose", [as_python](const Steps& steps) { return as_python(composed(steps)); });
  m.def("_random_apply", [as_python](const Steps& steps, double p) {
    return as_python(data::RandomApply(transforms_of(steps), p));
  });
  m.def("_random_choice", [as_python](const Steps& steps, const Numbers& p) {
    return as_python(data::RandomChoice(transforms_of(steps), p.values));
  });
  m.def("_random_order",
        [as_python](const Steps& steps) { return as_python(data::RandomOrder(transforms_of(steps))); });
}

}  // namespace tern::python
