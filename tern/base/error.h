// The typed exceptions of the library, all under tern::Error.
// The macro that throws them with formatted text is in base/check.h.
#pragma once

#include <exception>
#include <string>
#include <utility>

namespace tern {

/// Base of every exception that the library throws. `what()` is one complete message; callers on the way
/// out may put context before it ("loading 'm.pt': tensor 'fc1.weight': ...").
class Error : public std::exception {
 public:
  explicit Error(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& message() const noexcept { return message_; }
  /// Prepends "context: " to the message.
  void add_context(const std::string& context) { message_ = context + ": " + message_; }

 private:
  std::string message_;
};

/// Sizes, ranks or strides that do not fit an operator.
struct ShapeError : Error {
  using Error::Error;
};
/// A dtype that an operator does not take, or a cast that would lose meaning.
struct DTypeError : Error {
  using Error::Error;
};
/// A matrix for which there is no such result: singular, not positive definite, not finite.
struct LinAlgError : Error {
  using Error::Error;
};
/// An absent device, tensors on different devices, or a failing device.
struct DeviceError : Error {
  using Error::Error;
};
/// A dimension or an index out of range.
struct IndexError : Error {
  using Error::Error;
};
/// An argument with the right type and a wrong value.
struct ValueError : Error {
  using Error::Error;
};
/// A value of another kind than the one asked for.
struct TypeError : Error {
  using Error::Error;
};
/// Misuse of gradients: backward twice, a saved tensor changed in place, no gradient to be had.
struct AutogradError : Error {
  using Error::Error;
};
/// No memory left on a device; the process can go on.
struct OutOfMemoryError : Error {
  using Error::Error;
};
/// A step that cannot be recorded for replay.
struct CaptureError : Error {
  using Error::Error;
};
/// The processes of a group do not come together: one ended, is elsewhere, or asks for something else.
struct DistributedError : Error {
  using Error::Error;
};
/// The operating system refused a file operation; the text names path, operation and cause.
struct IoError : Error {
  using Error::Error;
};
/// A checkpoint that is broken, hostile or of an unsupported kind.
struct CheckpointError : Error {
  using Error::Error;
};
/// A data set whose files or samples are wrong.
struct DataError : Error {
  using Error::Error;
};
/// A combination that is meaningful but that no kernel computes yet.
struct NotImplementedError : Error {
  using Error::Error;
};

/// Runs `body`; an Error that leaves it gets "context: " before its message, its type unchanged.
template <class Body>
decltype(auto) with_context(const std::string& context, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (Error& error) {
    error.add_context(context);
    throw;
  }
}

}  // namespace tern
