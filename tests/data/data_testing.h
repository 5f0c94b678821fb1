// What the tests of the data room share: folders that vanish, expected errors, bytes from hexadecimal text.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tern/base/error.h"
#include "tern/data/bytes.h"
#include "tests/support/temporary_folder.h"

namespace tern::data::testing {

/// A folder for one test, with paths as text.
class TempFolder : public TemporaryFolder {
 public:
  std::string path() const { return TemporaryFolder::path().string(); }
  std::string file(const std::string& name) const { return (*this / name).string(); }
  /// Writes a file, making the folders above it.
  std::string write(const std::string& name, ByteView bytes) const {
    std::filesystem::create_directories((*this / name).parent_path());
    write_file(file(name), bytes);
    return file(name);
  }
};

inline Bytes unhex(const std::string& text) {
  Bytes bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

inline Bytes gzip(ByteView bytes) {
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  Bytes out(deflateBound(&stream, bytes.size()) + 64);
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// Expects `body` to throw E with all these pieces in its message.
template <class E, class Body>
void expect_error(Body&& body, const std::vector<std::string>& pieces) {
  try {
    body();
    ADD_FAILURE() << "nothing was thrown; expected an error with '" << pieces.front() << "'";
  } catch (const E& error) {
    for (const std::string& piece : pieces) EXPECT_THAT(error.what(), ::testing::HasSubstr(piece));
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another type was thrown: " << error.what();
  }
}

}  // namespace tern::data::testing
