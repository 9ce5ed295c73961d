FROM ruby:3-slim
WORKDIR /app
COPY Gemfile Gemfile.lock ./
RUN bundle install
COPY . .
USER nobody
CMD ["ruby", "app.rb"]
