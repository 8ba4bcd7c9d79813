-- The sessions that began on a day: how many, with a purchase, with one click, and their length.
-- A session ends half an hour after its last click.
CREATE MATERIALIZED VIEW daily_sessions AS
SELECT to_date(window_start) AS day,
       count(*) AS sessions,
       count_if(purchases > 0) AS buyers,
       count_if(clicks = 1) AS bounced,
       sum(unix_millis(window_end) - unix_millis(window_start) - 1800000) AS lasted_ms
FROM session_log
GROUP BY to_date(window_start)
