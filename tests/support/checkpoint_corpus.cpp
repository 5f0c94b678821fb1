#include "tests/support/checkpoint_corpus.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

namespace tern {

namespace {

using Json = nlohmann::json;

/// Two files name an integer of 615 digits and half of a surrogate pair, which the JSON reader refuses.
std::string readable_json(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const size_t digits = text.find_first_not_of("0123456789", i) - i;
    if (digits > 300) {
      result += '0';
      i += digits;
    } else if (text.compare(i, 3, "\\ud") == 0) {
      result += '?';
      i += 6;
    } else {
      result += text[i++];
    }
  }
  return result;
}

double real_of(const Json& json) {
  if (!json.is_string()) return json.is_boolean() ? json.get<bool>() : json.get<double>();
  const std::string text = json;
  return text == "nan" ? NAN : text == "inf" ? INFINITY : -INFINITY;
}

bool close(double a, double b, double tolerance) {
  if (std::isnan(b)) return std::isnan(a);
  return a == b || std::fabs(a - b) <= tolerance;
}

}  // namespace

std::filesystem::path shared_checkpoints() {
  const char* shared = std::getenv("TERN_SHARED_DIR");
  return shared ? std::filesystem::path(shared) / "checkpoints" : std::filesystem::path();
}

Json read_expected(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Json::parse(readable_json({std::istreambuf_iterator<char>(file), {}}));
}

std::complex<double> number_of(const Json& json) {
  if (json.is_array()) return {real_of(json[0]), real_of(json[1])};
  return real_of(json);
}

bool close(std::complex<double> a, std::complex<double> b, double tolerance) {
  return close(a.real(), b.real(), tolerance) && close(a.imag(), b.imag(), tolerance);
}

std::vector<BadCheckpoint> bad_checkpoints() {
  const std::filesystem::path folder = shared_checkpoints() / "bad";
  std::ifstream manifest(folder / "MANIFEST.tsv");
  std::string line;
  std::getline(manifest, line);
  std::vector<BadCheckpoint> files;
  while (std::getline(manifest, line)) {
    std::vector<std::string> fields;
    std::istringstream columns(line);
    for (std::string field; std::getline(columns, field, '\t');) fields.push_back(field);
    if (!std::filesystem::is_regular_file(folder / fields.at(0))) continue;
    files.push_back({folder / fields[0], fields[0] + ": " + fields.at(2), fields.at(3), fields.at(4)});
  }
  return files;
}

}  // namespace tern
