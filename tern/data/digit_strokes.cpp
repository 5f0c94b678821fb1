// Strokes of the ten digits and their rendering. Several ways of writing each digit are given as points on
// smooth curves; a picture takes one of them, bends it, and draws it with a pen of varying width.
#include "tern/data/digit_strokes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numbers>
#include <string_view>
#include <vector>

namespace tern::data {
namespace {

struct Point {
  float x = 0;
  float y = 0;
};

Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }
Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
Point operator*(float s, Point a) { return {s * a.x, s * a.y}; }

struct ControlPoint {
  Point at;
  bool corner = false;    ///< the curve may turn sharply here
  bool pen_down = false;  ///< a new stroke starts here
};

/// One way of writing a digit. `points` are "x,y" in percent of its box (y downwards) on a smooth curve;
/// '!' marks a corner, '|' lifts the pen. `aspect` is width / height; `weight` says how common it is.
struct StyleText {
  int digit;
  float weight;
  float aspect;
  std::string_view points;
};

constexpr StyleText kStyles[] = {
    {0, 4, .72f, "55,0 22,12 4,50 20,90 50,100 82,88 96,50 82,12 52,0"},
    {0, 2, .62f, "70,9 42,0 14,20 3,55 20,92 50,100 85,80 97,45 82,12 55,1 36,8"},
    {0, 1, .85f, "60,4 25,10 3,50 22,95 62,97 95,62 90,22 62,3 45,10 58,22"},
    {1, 5, .10f, "50,0 50,50 50,100"},
    {1, 2, .14f, "75,0 50,50 38,100"},
    {1, 1.5f, .32f, "8,24 70,0! 66,50 62,100"},
    {1, .8f, .50f, "12,22 52,0! 52,100! | 8,100 96,98"},
    {2, 3, .75f, "8,25 25,4 55,0 84,12 85,35 58,64 5,97! 50,96 97,95"},
    {2, 3, .85f, "8,22 30,2 65,1 88,24 75,55 45,82 15,98 3,88 18,76 45,88 70,98 97,90"},
    {2, 1.5f, .78f, "5,15 40,0 85,10 80,40 42,74 8,100! 50,92 98,98"},
    {2, 1.5f, .70f, "15,20 45,0 85,18 70,55 28,88 8,97! 32,87 65,98 97,86"},
    {3, 3, .68f, "8,12 40,0 80,8 84,28 62,44 34,48! 70,52 95,70 80,94 40,100 5,88"},
    {3, 1, .72f, "8,4! 88,4! 42,42! 75,46 95,70 78,95 38,100 5,88"},
    {3, 1.5f, .68f, "10,14 45,0 85,14 74,38 46,49 36,45 50,42 86,55 92,80 55,100 8,90"},
    {3, 2, .66f, "14,9 55,0 90,18 58,45! 98,64 84,94 40,100 3,84"},
    {4, 3, .72f, "20,0 12,30 5,58! 40,60 96,54 | 74,6 69,50 64,100"},
    {4, 1.5f, .72f, "66,0! 5,66! 98,64 | 67,0 64,50 60,100"},
    {4, 3, .66f, "14,2 8,30 22,50 55,50 86,34! 92,2! 86,50 80,100"},
    {4, 1.5f, .70f, "56,0! 3,66! 96,60 | 78,34 66,100"},
    {5, 2.5f, .75f, "86,3! 26,3! 18,42! 50,36 88,50 90,78 60,100 6,92"},
    {5, 2, .75f, "25,5! 18,45! 55,38 92,58 85,90 45,100 5,90 | 25,5 60,3 95,1"},
    {5, 1.5f, .70f, "92,5 50,2 24,12 20,36 55,47 88,66 75,94 40,100 5,92"},
    {5, 1, .90f, "24,3! 14,42! 60,42 85,66 60,95 8,98 | 24,4 60,6 97,0"},
    {6, 3, .62f, "74,0 35,22 10,60 15,90 50,100 86,88 85,64 52,53 18,72"},
    {6, 2, .66f, "56,0 22,35 5,75 30,100 70,98 92,76 66,56 32,62 12,82"},
    {6, 1, .66f, "88,5 50,8 15,42 5,76 35,100 80,92 90,66 60,53 25,62 10,78"},
    {6, 1.5f, .52f, "62,0 30,40 15,80 40,100 76,92 72,70 42,67 18,86"},
    {7, 4, .70f, "5,6! 50,6 92,4! 62,45 40,100"},
    {7, 1.5f, .75f, "5,8! 92,4! 56,50 35,100 | 22,52 86,47"},
    {7, 1.5f, .72f, "8,22 11,4! 95,6! 62,50 50,100"},
    {7, 1.5f, .72f, "3,16 25,4 60,9 96,2! 70,42 45,100"},
    {8, 3, .62f, "80,10 45,0 18,18 40,42 80,62 88,86 50,100 12,86 22,62 60,42 88,20 70,3"},
    {8, 1.5f, .60f, "50,0 20,10 20,36 50,47 80,36 80,10 50,0 | 50,47 12,60 10,88 50,100 90,88 88,60 50,47"},
    {8, 2, .66f, "94,6 55,1 25,20 50,48 74,72 55,98 20,92 14,72 50,50 86,25 97,6"},
    {9, 3, .62f, "86,20 60,0 20,8 8,32 35,50 72,42 86,18! 84,55 68,100"},
    {9, 1.5f, .66f, "88,25 55,0 15,15 14,42 50,52 86,30! 90,62 70,92 30,100 8,92"},
    {9, 2, .60f, "82,20 50,0 15,12 10,38 42,50 80,30 | 86,6 80,50 74,100"},
    {9, 1.5f, .52f, "80,12 40,2 10,24 28,44 78,24! 66,60 46,100"},
};

/// The most points a way of writing may have.
constexpr int kMaxPoints = 16;
static_assert(std::all_of(std::begin(kStyles), std::end(kStyles), [](const StyleText& style) {
  return std::count(style.points.begin(), style.points.end(), ',') <= kMaxPoints;
}));

struct Style {
  float weight = 0;
  float aspect = 1;
  std::vector<ControlPoint> points;
};

Style parse_style(const StyleText& text) {
  Style style{text.weight, text.aspect, {}};
  const char* at = text.points.data();
  const char* const end = at + text.points.size();
  bool pen_down = true;
  while (at < end) {
    if (*at == ' ') {
      ++at;
    } else if (*at == '|') {
      pen_down = true;
      ++at;
    } else {
      int x = 0, y = 0;
      at = std::from_chars(at, end, x).ptr + 1;
      at = std::from_chars(at, end, y).ptr;
      const bool corner = at < end && *at == '!';
      at += corner ? 1 : 0;
      style.points.push_back(
          {{static_cast<float>(x) / 100.0f, static_cast<float>(y) / 100.0f}, corner, pen_down});
      pen_down = false;
    }
  }
  return style;
}

using StyleTable = std::array<std::vector<Style>, 10>;

const StyleTable& style_table() {
  static const StyleTable table = [] {
    StyleTable styles;
    for (const StyleText& text : kStyles) {
      styles[static_cast<size_t>(text.digit)].push_back(parse_style(text));
    }
    return styles;
  }();
  return table;
}

const Style& choose_style(int digit, Random& random) {
  const std::vector<Style>& styles = style_table()[static_cast<size_t>(digit)];
  float total = 0;
  for (const Style& style : styles) total += style.weight;
  float left = random.uniform() * total;
  for (const Style& style : styles) {
    left -= style.weight;
    if (left < 0) return style;
  }
  return styles.back();
}

/// A straight piece of a stroke with its pen radius at both ends, in pixels.
struct Segment {
  Point from;
  Point to;
  float radius_from = 0;
  float radius_to = 0;
};

/// Straight pieces between two points of a curve.
constexpr int kSteps = 5;

struct Drawing {
  std::array<Segment, kMaxPoints * kSteps> segments;
  int count = 0;
};

/// Cuts the curve through the control points (Catmull-Rom, whose tangents vanish at corners and pen lifts)
/// into straight segments.
void trace(std::span<const ControlPoint> points, Drawing& drawing) {
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    if (points[i + 1].pen_down) continue;
    const Point a = points[i].at, b = points[i + 1].at;
    const bool smooth_a = i > 0 && !points[i].corner && !points[i].pen_down;
    const bool smooth_b = i + 2 < points.size() && !points[i + 1].corner && !points[i + 2].pen_down;
    // A free end takes the tangent that makes the piece a parabola.
    const Point straight = b - a;
    Point tangent_a = smooth_a ? 0.5f * (b - points[i - 1].at) : straight;
    Point tangent_b = smooth_b ? 0.5f * (points[i + 2].at - a) : straight;
    if (!smooth_a && smooth_b) tangent_a = 1.5f * straight - 0.5f * tangent_b;
    if (!smooth_b && smooth_a) tangent_b = 1.5f * straight - 0.5f * tangent_a;
    Point previous = a;
    for (int step = 1; step <= kSteps; ++step) {
      const float t = static_cast<float>(step) / kSteps, t2 = t * t, t3 = t2 * t;
      const Point next = (2 * t3 - 3 * t2 + 1) * a + (t3 - 2 * t2 + t) * tangent_a + (3 * t2 - 2 * t3) * b +
                         (t3 - t2) * tangent_b;
      drawing.segments[static_cast<size_t>(drawing.count++)] = {previous, next, 0, 0};
      previous = next;
    }
  }
}

/// A smooth random displacement: a few long waves (after the elastic distortions of Simard et al., 2003).
class Elastic {
 public:
  Elastic(Random& random, float strength) {
    for (Wave& wave : waves_) {
      const float angle = random.uniform(0, 2 * std::numbers::pi_v<float>);
      const float frequency = random.uniform(2.0f, 6.5f);
      wave = {{frequency * std::cos(angle), frequency * std::sin(angle)},
              random.uniform(0, 2 * std::numbers::pi_v<float>),
              {random.normal(0, strength), random.normal(0, strength)}};
    }
  }
  Point operator()(Point p) const {
    Point moved = p;
    for (const Wave& wave : waves_) {
      const float s = std::sin(wave.direction.x * p.x + wave.direction.y * p.y + wave.phase);
      moved = moved + s * wave.amplitude;
    }
    return moved;
  }

 private:
  struct Wave {
    Point direction;
    float phase = 0;
    Point amplitude;
  };
  std::array<Wave, 3> waves_;
};

/// Bends, slants and turns the drawing; coordinates stay in units of the digit's height.
void distort(Drawing& drawing, Random& random, int digit) {
  const float shear = random.normal(0.14f, 0.22f);
  const float angle = random.normal(0.0f, digit == 1 ? 0.17f : 0.13f);
  const float cosine = std::cos(angle), sine = std::sin(angle);
  const Elastic elastic(random, 0.040f);
  const auto move = [&](Point p) {
    const Point bent = elastic(p);
    const Point slanted{bent.x - shear * bent.y, bent.y};
    return Point{cosine * slanted.x - sine * slanted.y, sine * slanted.x + cosine * slanted.y};
  };
  for (int i = 0; i < drawing.count; ++i) {
    Segment& segment = drawing.segments[static_cast<size_t>(i)];
    segment.from = move(segment.from);
    segment.to = move(segment.to);
  }
}

/// Scales the drawing to the box of the pictures, chooses the pen, and moves its centre of mass to the
/// middle.
void place(Drawing& drawing, Random& random) {
  Point low{1e9f, 1e9f}, high{-1e9f, -1e9f};
  Point centre;
  float length = 0;
  const std::span<Segment> segments(drawing.segments.data(), static_cast<size_t>(drawing.count));
  for (const Segment& segment : segments) {
    for (const Point p : {segment.from, segment.to}) {
      low = {std::min(low.x, p.x), std::min(low.y, p.y)};
      high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
    const Point d = segment.to - segment.from;
    const float piece = std::sqrt(d.x * d.x + d.y * d.y);
    centre = centre + (0.5f * piece) * (segment.from + segment.to);
    length += piece;
  }
  centre = (1.0f / std::max(length, 1e-6f)) * centre;

  const float radius = std::clamp(1.22f * std::exp(random.normal(0, 0.30f)), 0.55f, 2.1f);
  const float box = 20.0f * random.uniform(0.88f, 1.03f) - 2 * radius;
  const float scale = box / std::max({high.x - low.x, high.y - low.y, 0.2f});
  const float middle = (kDigitSide - 1) / 2.0f;
  // About the middle, but so that all ink stays off the border.
  const auto place_axis = [&](float mass, float first, float last) {
    const float room_low = radius + 1.5f - scale * (first - mass);
    const float room_high = kDigitSide - 2.5f - radius - scale * (last - mass);
    return std::clamp(middle + random.normal(0, 0.5f), std::min(room_low, room_high),
                      std::max(room_low, room_high));
  };
  const float shift_x = place_axis(centre.x, low.x, high.x);
  const Point shift{shift_x, place_axis(centre.y, low.y, high.y)};
  const float taper = random.normal(0, 0.18f);
  const float wobble = random.uniform(0, 2 * std::numbers::pi_v<float>);
  float along = 0;
  for (Segment& segment : segments) {
    const Point d = segment.to - segment.from;
    const auto pressure = [&](float at) {
      const float t = at / std::max(length, 1e-6f);
      return radius * std::clamp(1 + taper * (2 * t - 1) + 0.10f * std::sin(9 * t + wobble), 0.5f, 1.5f);
    };
    segment.radius_from = pressure(along);
    along += std::sqrt(d.x * d.x + d.y * d.y);
    segment.radius_to = pressure(along);
    segment.from = shift + scale * (segment.from - centre);
    segment.to = shift + scale * (segment.to - centre);
  }
}

using Canvas = std::array<float, kDigitSide * kDigitSide>;

/// Adds the ink of one segment: 1 inside the pen's outline, falling to 0 over `softness` pixels.
void ink(const Segment& segment, float softness, Canvas& canvas) {
  const Point d = segment.to - segment.from;
  const float inverse_length2 = 1.0f / std::max(d.x * d.x + d.y * d.y, 1e-9f);
  const float reach = std::max(segment.radius_from, segment.radius_to) + softness;
  const auto first = [&](float a, float b) {
    return std::clamp(static_cast<int>(std::ceil(std::min(a, b) - reach)), 0, kDigitSide);
  };
  const auto last = [&](float a, float b) {
    return std::clamp(static_cast<int>(std::floor(std::max(a, b) + reach)), -1, kDigitSide - 1);
  };
  const int x0 = first(segment.from.x, segment.to.x), x1 = last(segment.from.x, segment.to.x);
  const int y0 = first(segment.from.y, segment.to.y), y1 = last(segment.from.y, segment.to.y);
  const float slope = 0.5f / softness;
  for (int y = y0; y <= y1; ++y) {
    float* row = canvas.data() + y * kDigitSide;
    const float py = static_cast<float>(y) - segment.from.y;
    for (int x = x0; x <= x1; ++x) {
      const float px = static_cast<float>(x) - segment.from.x;
      const float t = std::clamp((px * d.x + py * d.y) * inverse_length2, 0.0f, 1.0f);
      const float dx = px - t * d.x, dy = py - t * d.y;
      const float radius = segment.radius_from + t * (segment.radius_to - segment.radius_from);
      const float coverage = 0.5f + slope * (radius - std::sqrt(dx * dx + dy * dy));
      row[x] = std::max(row[x], std::min(coverage, 1.0f));
    }
  }
}

}  // namespace

void draw_digit(int digit, Random& random, std::span<uint8_t, kDigitSide * kDigitSide> pixels) {
  const Style& style = choose_style(digit, random);
  std::array<ControlPoint, kMaxPoints> points;
  const size_t count = style.points.size();
  const float aspect = style.aspect * std::exp(random.normal(0, 0.18f));
  for (size_t i = 0; i < count; ++i) {
    points[i] = style.points[i];
    points[i].at = {aspect * (points[i].at.x - 0.5f) + random.normal(0, 0.024f),
                    points[i].at.y - 0.5f + random.normal(0, 0.024f)};
  }
  Drawing drawing;
  trace(std::span(points.data(), count), drawing);
  distort(drawing, random, digit);
  place(drawing, random);

  Canvas canvas{};
  const float softness = random.uniform(0.55f, 0.95f);
  for (int i = 0; i < drawing.count; ++i) ink(drawing.segments[static_cast<size_t>(i)], softness, canvas);

  const float brightness = random.uniform(225.0f, 275.0f);
  const float grain = random.uniform(0.0f, 0.16f);
  const float dust = random.uniform(0.0f, 5.0f);
  uint32_t noise = 0;
  for (size_t i = 0; i < canvas.size(); ++i) {
    // Of each 16 random bits, one byte is the ink's grain and one the paper's dust.
    noise = i % 2 == 0 ? random.bits() : noise >> 16;
    const float fade = 1.0f - grain * static_cast<float>(noise & 0xFFu) / 255.0f;
    const float value =
        brightness * canvas[i] * fade + dust * static_cast<float>(noise >> 8 & 0xFFu) / 255.0f;
    pixels[i] = static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f));
  }
}

}  // namespace tern::data
