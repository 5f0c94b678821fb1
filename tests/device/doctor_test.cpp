// The doctor on made-up machines: the table of causes in doctor_rows.h, and machines full of nonsense.
#include "tern/device/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/device/doctor_rows.h"

namespace tern {
namespace {

using ::testing::HasSubstr;

using namespace doctor_rows;

std::string text_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings)
    text += std::string(severity_name(finding.severity)) + " " + finding.subject + ": " + finding.looked_at +
            "\n    " + finding.found + "\n    " + finding.to_do + "\n";
  return text;
}

bool contains_all(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (text.find(word) == std::string::npos) return false;
  return true;
}

TEST(Doctor, FindsEachCause) {
  for (Row& row : rows()) {
    SCOPED_TRACE(row.name);
    MadeUpMachine made_up;
    row.make(made_up);
    const Unprivileged unprivileged;
    if (!unprivileged.works() && std::string(row.name).find("permission") != std::string::npos) continue;
    const auto findings = diagnose({made_up.read(), row.readings, row.program});
    size_t problems = 0;
    for (const Finding& finding : findings) {
      EXPECT_FALSE(finding.subject.empty() || finding.looked_at.empty() || finding.found.empty());
      for (const std::string* text : {&finding.looked_at, &finding.found, &finding.to_do})
        for (char c : *text) EXPECT_TRUE(c >= ' ' && c < '\x7f') << *text;
      if (finding.severity >= Severity::kWarning) {
        EXPECT_FALSE(finding.to_do.empty()) << finding.found;
      }
      problems += finding.severity == Severity::kProblem;
    }
    EXPECT_EQ(problems, row.problems) << text_of(findings);
    EXPECT_EQ(has_problem(findings), row.problems > 0);
    for (const Expected& expected : row.expected) {
      bool found = false;
      for (const Finding& finding : findings)
        found = found ||
                (finding.severity == expected.severity && finding.subject == expected.subject &&
                 contains_all(finding.found, expected.found) && contains_all(finding.to_do, expected.to_do));
      EXPECT_TRUE(found) << "expected " << severity_name(expected.severity) << " " << expected.subject << ": "
                         << (expected.found.empty() ? "" : expected.found[0]) << "; got\n"
                         << text_of(findings);
    }
  }
}

TEST(Doctor, RandomFilesNeverThrow) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    MadeUpMachine made_up;
    made_up.healthy(2);
    module_for(made_up, kKernel);
    secure_boot(made_up);
    made_up.environment.cuda_visible_devices = std::string(seed, static_cast<char>(random() % 256)) + ",0";
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(made_up.real("/")))
      if (entry.is_regular_file() || entry.is_symlink()) files.push_back(entry.path());
    for (const auto& file : files) {
      const unsigned choice = random() % 6;
      if (choice > 2) continue;
      std::filesystem::remove(file);
      if (choice == 1) std::filesystem::create_directory(file);
      if (choice == 2) {
        std::ofstream out(file, std::ios::binary);
        for (unsigned left = random() % 300; left > 0; --left) out.put(static_cast<char>(random() % 256));
      }
    }
    EXPECT_NO_THROW(EXPECT_FALSE(diagnose({made_up.read(), {}, {}}).empty())) << seed;
  }
}

TEST(Doctor, ARootThatIsNotThereIsAProblem) {
  MachineOptions options;
  options.root = "/nonexistent/machine";
  const auto findings = diagnose({read_machine(options), {}, {}});
  ASSERT_EQ(findings.size(), 1u) << text_of(findings);
  EXPECT_EQ(findings[0].severity, Severity::kProblem);
  EXPECT_THAT(findings[0].looked_at, HasSubstr("/nonexistent/machine"));
}

TEST(Doctor, ExpectsAGpuOnlyWhereThereAreSignsOfOne) {
  MadeUpMachine machine;
  EXPECT_FALSE(gpu_expected({machine.read(), {}, {}}));
  machine.libraries();
  machine.pci("0000:00:02.0", "0x8086", "0x9a49", "i915");
  EXPECT_FALSE(gpu_expected({machine.read(), {}, {}}));
  machine.pci("0000:01:00.0", "0x10de", "0x2206", "");
  EXPECT_TRUE(gpu_expected({machine.read(), {}, {}}));
}

TEST(Doctor, TheRealMachineIsExaminedQuickly) {
  const auto start = std::chrono::steady_clock::now();
  MachineOptions options;
  options.environment = MachineEnvironment::current();
  EXPECT_FALSE(diagnose({read_machine(options), {}, {}}).empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

}  // namespace
}  // namespace tern
